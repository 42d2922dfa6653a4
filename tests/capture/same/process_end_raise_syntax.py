compile("a b", "f", "exec")
