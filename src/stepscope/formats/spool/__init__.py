"""Spools: what Stepscope's own tracers have flushed so far (`HOST.xplane.pb.partial`).

A capture appends to its spool while it runs and makes the profile of it when it ends.  The spool of a job that was
killed stays behind and is read like any other profile, up to the last complete record.
"""
