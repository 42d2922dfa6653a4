import threading

print(threading.stack_size())
threading.stack_size(262144)
t = threading.Thread(target=print, args=("x",))
t.start()
t.join()
