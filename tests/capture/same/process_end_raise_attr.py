import os

os.getcwdd()
