"""Captures of programs that say nothing about profiling: `stepscope run`, the environment, a signal.

- imports: tells when a framework has been imported
- finders: one per framework; finds the steps of a program that does not mark them
- watcher: decides what to capture, from the steps that the finders see
- settings: what the environment or the command line asks for
- autostart: arms all this in a process, and the signal
- run: runs a script as Python would
- children: takes the watch along into processes that the program starts
"""
