# modes: run api watch prove
import http.client
import http.server
import multiprocessing.connection
import multiprocessing.dummy
import selectors
import socket
import socketserver
import threading
import urllib.request
import xmlrpc.client
import xmlrpc.server


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, text, *values):
        print("log", text % values)


with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    port = server.server_address[1]
    print(urllib.request.urlopen(f"http://127.0.0.1:{port}/path").read())
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/two")
    print(connection.getresponse().status)
    connection.close()
    server.shutdown()
    thread.join()
with xmlrpc.server.SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False) as server:
    server.register_function(pow)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    print(xmlrpc.client.ServerProxy(f"http://127.0.0.1:{server.server_address[1]}").pow(2, 9))
    thread.join()
one, two = socket.socketpair()
selector = selectors.DefaultSelector()
selector.register(one, selectors.EVENT_READ, "one")
two.send(b"x")
print([key.data for key, _ in selector.select(5)], one.recv(1), selector.select(0.01))
listener = multiprocessing.connection.Listener(("127.0.0.1", 0), authkey=b"k")


def serve():
    with listener.accept() as peer:
        peer.send(peer.recv()[::-1])


thread = threading.Thread(target=serve)
thread.start()
with multiprocessing.connection.Client(listener.address, authkey=b"k") as client:
    client.send([1, 2])
    print(client.recv())
thread.join()
listener.close()
with multiprocessing.dummy.Pool(2) as pool:
    print(pool.map(str, range(3)))
pool.join()
print([each.name for each in threading.enumerate() if "process_request_thread" not in each.name])
