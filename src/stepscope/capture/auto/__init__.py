"""Captures of programs that contain no profiling code: by `stepscope run`, the environment, or a signal.

- autopilot: decides what to capture, from the steps of the training loop
- settings: what the environment or the command line asks for
- autostart: installs all this in a process, and the signal handler
- run: starts a script as its user would
- children: extends the watch to processes that the program starts
- ledger: lists what those processes have captured
"""
