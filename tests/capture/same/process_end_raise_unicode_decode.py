b"\xff".decode()
