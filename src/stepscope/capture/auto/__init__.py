"""Captures of programs that contain no profiling code: by `stepscope run`, the environment, or a signal.

- imports: calls back when a framework has been imported
- finders: one per framework; finds the steps of a program that does not mark them
- autopilot: decides what to capture, from the steps that the finders report
- settings: what the environment or the command line asks for
- autostart: installs all this in a process, and the signal handler
- run: starts a script as its user would
- startup: comes before the first line of a program and of what it starts
- children: extends the watch to processes that the program starts
- ledger: lists what those processes have captured
"""
