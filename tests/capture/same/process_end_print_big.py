print("x" * 1000000)
