import multiprocessing as mp
import sys

print(
    "__mp_main__" in sys.modules,
    sys.modules.get("__mp_main__") is sys.modules["__main__"],
    mp.parent_process(),
    mp.current_process(),
)
