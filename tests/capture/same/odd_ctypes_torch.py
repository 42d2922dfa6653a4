import ctypes
import time
import threading
import torch

m = torch.nn.Linear(8, 8)
opt = torch.optim.SGD(m.parameters(), lr=0.01)
libc = ctypes.CDLL(None)
CMP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
trained = 0


def cmp(a, b):
    global trained
    opt.zero_grad()
    m(torch.ones(2, 8)).sum().backward()
    opt.step()
    trained += 1
    return a[0] - b[0]


for _ in range(3):
    arr = (ctypes.c_int * 12)(*[5, 3, 9, 1, 7, 2, 8, 4, 6, 0, 11, 10])
    libc.qsort(arr, 12, 4, CMP(cmp))
    print(list(arr))
START = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
done = []


def body(_):
    for _ in range(30):
        opt.zero_grad()
        m(torch.ones(2, 8)).sum().backward()
        opt.step()
    done.append(threading.current_thread().name.startswith("Dummy"))
    return None


cb = START(body)
t = ctypes.c_ulong()
pt = libc.pthread_create(ctypes.byref(t), None, cb, None)
libc.pthread_join(t, None)
print(trained > 20, done, threading.active_count())
