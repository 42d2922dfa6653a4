import os
import runpy

open("_t_x.py", "w").write("print(__name__)")
runpy.run_path("_t_x.py", run_name="__main__")
os.remove("_t_x.py")
