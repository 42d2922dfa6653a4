# arguments: functions
"""Signals that the program handles, ignores, waits for, or sends to its children and threads."""

import _thread
import os
import signal
import socket
import subprocess
import sys
import threading
import time


def children_noted():
    noted = []
    signal.signal(signal.SIGCHLD, lambda *a: noted.append(1))
    subprocess.run(["true"])
    time.sleep(0.2)
    print(len(noted))


def children_ignored():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print(subprocess.call(["true"]))


def children_reaped():
    def reap(*a):
        try:
            while True:
                child, status = os.waitpid(-1, os.WNOHANG)
                if not child:
                    break
                print("reaped", status)
        except ChildProcessError:
            pass

    signal.signal(signal.SIGCHLD, reap)
    if not os.fork():
        os._exit(2)
    time.sleep(0.5)


def defaults():
    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.getsignal(signal.SIGPIPE))


def group():
    sleeps = [sys.executable, "-c", "import time; time.sleep(30)"]
    process = subprocess.Popen(sleeps, start_new_session=True)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGTERM)
    print(process.wait())


def interrupt_caught():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(2)
    except KeyboardInterrupt:
        print("caught")


def interrupt_of_a_thread():
    threading.Timer(0.3, _thread.interrupt_main).start()
    try:
        time.sleep(5)
    except KeyboardInterrupt:
        print("int")


def handled():
    for number in (signal.SIGINT, signal.SIGUSR2):
        signal.signal(number, lambda *a: print("mine"))
        os.kill(os.getpid(), number)
        time.sleep(0.2)


def ignored():
    for number in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
        os.kill(os.getpid(), number)
    print("alive")


def timer():
    seen = []
    signal.signal(signal.SIGALRM, lambda *a: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    begun = time.time()
    while time.time() - begun < 1.05:
        time.sleep(0.01)
    print(8 <= len(seen) <= 11, signal.getitimer(signal.ITIMER_REAL)[1])  # it still runs when the program ends


def watchdog():
    signal.alarm(5)
    time.sleep(0.3)
    print(signal.alarm(0) > 0)


def handler_raises():
    signal.signal(signal.SIGUSR1, lambda *a: (_ for _ in ()).throw(OSError("intr")))
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    try:
        time.sleep(3)
    except OSError as error:
        print(error)


def ended_later():
    time.sleep(0.5)
    print("x", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)


def handler_exits():
    signal.signal(signal.SIGTERM, lambda *a: sys.exit(12))
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(3)


def to_a_thread():
    signal.signal(signal.SIGUSR1, lambda *a: print("in", threading.current_thread().name))
    thread = threading.Thread(target=time.sleep, args=(0.5,))
    thread.start()
    signal.pthread_kill(thread.ident, signal.SIGUSR1)
    thread.join()


def wakes_a_socket():
    one, other = socket.socketpair()
    one.setblocking(False)
    print(signal.set_wakeup_fd(one.fileno()))
    signal.signal(signal.SIGUSR1, lambda *x: None)
    os.kill(os.getpid(), signal.SIGUSR1)
    print(other.recv(10) == bytes([signal.SIGUSR1]))


globals()[sys.argv[1]]()
