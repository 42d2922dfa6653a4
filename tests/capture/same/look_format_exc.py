"""Tracebacks as text, from several places, with frames and lines."""

import traceback


def inner(n):
    if n == 0:
        raise KeyError("deep")
    inner(n - 1)


try:
    inner(3)
except KeyError as error:
    print(traceback.format_exc())
    print(traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__)).format()[-1])
    print(len(traceback.extract_stack()))
print("".join(traceback.format_stack()))
