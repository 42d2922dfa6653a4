# modes: run watch prove
import inspect
import sys
import threading
import time
import traceback

begun, end = threading.Event(), threading.Event()


def wait():
    secret = "mine"
    begun.set()
    end.wait()
    assert secret == "mine"


thread = threading.Thread(target=wait, name="waits")
thread.start()
begun.wait()
time.sleep(0.1)
frames = sys._current_frames()
stack = [each.name for each in traceback.extract_stack(frames[thread.ident]) if "threading" not in each.filename]
print(stack, {thread.ident, threading.get_ident()} <= set(frames))
frame = frames[thread.ident]
while frame.f_code.co_name != "wait":
    frame = frame.f_back
print(frame.f_locals, inspect.getframeinfo(frame).function, frame.f_lineno)
del frame, frames
print(sys._current_exceptions()[threading.get_ident()])
end.set()
thread.join()
print([each.name for each in threading.enumerate()], threading.active_count(), thread.native_id != 0)
print([each.function for each in inspect.stack()], len(traceback.extract_stack()))
try:
    raise ValueError("here")
except ValueError as error:
    print(sys.exc_info()[2].tb_frame is sys._getframe(), error.__traceback__.tb_next, sys.exception() is error)
for timer in (threading.Timer(0.01, print, ["timer"]), threading.Timer(60, print)):
    timer.daemon = True
    timer.start()
time.sleep(0.2)
print(sorted(type(each).__name__ for each in threading.enumerate()))
