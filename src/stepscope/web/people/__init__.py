"""What people say of sessions: titles, labels, notes and stars; and the profiles that they upload."""
