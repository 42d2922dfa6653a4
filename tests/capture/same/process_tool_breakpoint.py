import sys

sys.breakpointhook = lambda *a: print("bp")
breakpoint()
