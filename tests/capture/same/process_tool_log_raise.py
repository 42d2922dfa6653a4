import logging


class H(logging.Handler):
    def emit(self, r):
        print("rec", r.name, r.getMessage())


logging.root.addHandler(H())
logging.root.setLevel(0)
logging.warning("w")
