"""Callbacks for trainers.  Each module is imported only when it is asked for."""
