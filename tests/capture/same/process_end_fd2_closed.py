import os

os.close(2)
print("o")
