import sys

import __main__

print(
    sorted(vars(__main__)),
    __main__.__spec__,
    __main__.__loader__.__class__,
    __builtins__,
    sys.modules["__main__"] is __main__,
    __main__.__file__ == sys.argv[0],
)
