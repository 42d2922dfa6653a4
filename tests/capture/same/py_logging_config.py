# modes: run api watch prove
import logging
import logging.config
import logging.handlers
import queue
import sys
import threading
import warnings

logging.warning("before any handler")
logging.root.handlers.clear()
logging.config.dictConfig(
    {
        "version": 1,
        "formatters": {
            "f": {"format": "%(levelname)s %(name)s %(threadName)s %(processName)s %(funcName)s %(lineno)d %(message)s"}
        },
        "handlers": {"out": {"class": "logging.StreamHandler", "formatter": "f", "stream": "ext://sys.stdout"}},
        "root": {"handlers": ["out"], "level": "DEBUG"},
        "loggers": {"quiet": {"level": "ERROR"}},
    }
)
logging.captureWarnings(True)
warnings.warn("captured", stacklevel=1)
logging.getLogger("quiet").info("not shown")
logging.getLogger("loud.child").debug("shown %s", {"a": 1})
records = queue.SimpleQueue()
listener = logging.handlers.QueueListener(records, *logging.root.handlers)
logging.root.handlers = [logging.handlers.QueueHandler(records)]
listener.start()
threads = [threading.Thread(target=logging.info, args=("from %d", i), name=f"w{i}") for i in range(3)]
for thread in threads:
    thread.start()
    thread.join()
listener.stop()


class Adapter(logging.LoggerAdapter):
    def process(self, message, values):
        return f"[{self.extra['id']}] {message}", values


handler = logging.StreamHandler(sys.stderr)
handler.setFormatter(logging.Formatter("%(name)s|%(message)s"))
logging.root.handlers = [handler]
Adapter(logging.getLogger("adapted"), {"id": 5}).error("text")
try:
    1 / 0
except ZeroDivisionError:
    logging.exception("failed")
logging.info("%d", "wrong")
logging.disable(logging.CRITICAL)
logging.critical("silent")
print(logging.getLogger("x").getEffectiveLevel(), logging.lastResort.level, logging.raiseExceptions)
