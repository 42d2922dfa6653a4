"""Callbacks for the trainers that people use.  Each is imported only by who asks for it."""
