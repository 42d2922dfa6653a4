"""What all tools together say of a session: the overview and the advice."""
