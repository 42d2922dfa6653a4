"""What Python itself runs first in a process that is followed: its folder stands first in PYTHONPATH for that moment."""
