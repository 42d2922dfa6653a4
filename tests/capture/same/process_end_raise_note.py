e = ValueError("n")
e.add_note("note")
raise e
