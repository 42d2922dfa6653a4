raise ValueError("x")
