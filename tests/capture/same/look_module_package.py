"""A package that is run by -m, from a folder, and from a zip."""

import os
import subprocess
import sys
import zipfile

os.makedirs("pack/inner", exist_ok=True)
text = "import os, sys; print(__name__, __spec__ and __spec__.name, __package__, len(sys.argv), os.path.relpath(__file__), os.path.relpath(sys.path[0]))\n"
for name in ("pack/__init__.py", "pack/inner/__init__.py"):
    open(name, "w").close()
for name in ("pack/__main__.py", "pack/inner/__main__.py", "pack/one.py", "__main__.py"):
    with open(name, "w") as file:
        file.write(text)
with zipfile.ZipFile("app.pyz", "w") as packed:
    packed.write("__main__.py")
for words in (["-m", "pack"], ["-m", "pack.inner", "x"], ["-m", "pack.one"], ["."], ["app.pyz"], ["pack"]):
    print(subprocess.run([sys.executable, *words], capture_output=True, text=True).stdout, end="")
