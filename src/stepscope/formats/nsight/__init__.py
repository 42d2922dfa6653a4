"""Exports of Nsight Systems: a database of SQLite, or a folder of Parquet files; a table for each kind of event."""
