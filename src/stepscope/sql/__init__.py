"""Questions in SQL about one or several sessions, answered by DuckDB over the columns of the traces.

    views.py        what can be asked: each view with its columns, their units and meanings
    event_views.py, other_views.py   how the columns of the views are computed from a trace
    arrow.py        numpy columns as Arrow arrays, without copying where the layouts agree
    macros.py       functions for what everyone needs: units, time per step, events within others, overlap
    tool_tables.py  the tables of all tools, by tool and section
    database.py     the locked connection that answers; it computes a column when a query reads it
    mistakes.py     what may be asked, and the engine's errors as ours, with the position and the nearest names
    answer.py       the result as a report; what can be asked as one
    limits.py       what a question may use

The connection lives in a process of its own, which can be ended: worker.py there, asking.py here.
"""
