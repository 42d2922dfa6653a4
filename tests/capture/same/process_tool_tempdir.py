import os
import tempfile

with tempfile.TemporaryDirectory() as d:
    print(os.listdir(d), oct(os.stat(d).st_mode))
print(tempfile.gettempdir())
