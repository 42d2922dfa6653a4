"""What people say of sessions: titles, labels, notes and stars."""
