"""What the program knows of itself."""

import __main__
import inspect
import sys

print(__name__, __spec__, __loader__.__class__.__name__, __package__, __doc__, __builtins__.__name__)
print(sorted(name for name in vars(__main__) if name.startswith("__")))
print(sys.modules["__main__"] is __main__, inspect.getsourcefile(sys._getframe()) == __file__)
print(
    sys.argv[1:], sys.flags, sys.warnoptions, sys._xoptions, len(sys.path), sys.path[0] == __file__.rpartition("/")[0]
)
print(sys._getframe().f_back, inspect.stack()[0].lineno, sys._getframe().f_code.co_filename == __file__)
