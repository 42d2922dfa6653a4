import os

os.closerange(0, 3)
