import os
import subprocess
import sys
import tempfile
import zipapp

d = tempfile.mkdtemp()
os.mkdir(d + "/a")
open(d + "/a/__main__.py", "w").write("import sys; print(__name__, len(sys.argv))")
zipapp.create_archive(d + "/a", d + "/a.pyz")
print(subprocess.run([sys.executable, d + "/a.pyz", "1"], capture_output=True, text=True).stdout)
