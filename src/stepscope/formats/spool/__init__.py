"""Spools: what Stepscope's own tracers have flushed so far (`HOST.xplane.pb.partial`).

A capture appends to its spool while it runs, and converts it to the profile when it ends.  If the job is killed, its
spool remains and is read like any other profile, up to the last complete record.
"""
