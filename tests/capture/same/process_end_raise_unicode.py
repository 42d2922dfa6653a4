raise ValueError("\udc80 é")
