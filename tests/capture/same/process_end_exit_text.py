import sys

sys.exit("bad thing")
