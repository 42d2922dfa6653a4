"""What Python itself runs first in a process that is followed: for that moment PYTHONPATH begins with this folder."""
