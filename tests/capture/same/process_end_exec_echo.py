import os

os.execvp("echo", ["echo", "hi"])
