"""The steps of the running program, for everybody who follows them: schedule, `run`, watch, series, prove, cost.

- step_loop: decides once which of the things that happen once per step are the training loop
- finding: the finders of this process, installed when a framework is imported
- jax, keras, tensorflow, torch: one finder per framework; finds the steps of a program that does not mark them
"""
