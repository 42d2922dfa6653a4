import socket

s = socket.create_server(("127.0.0.1", 0))
c = socket.create_connection(s.getsockname())
a, _ = s.accept()
c.send(b"x")
print(a.recv(1), s.fileno(), c.fileno(), a.fileno())
