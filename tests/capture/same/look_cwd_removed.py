"""The working folder is removed, and the program goes on."""

import os
import tempfile

place = tempfile.mkdtemp()
os.chdir(place)
os.rmdir(place)
try:
    os.getcwd()
except FileNotFoundError as error:
    print(error)
os.chdir("/")
print(os.getcwd(), os.umask(0o77), os.umask(0o22))
