import signal

print(
    {
        s.name: signal.getsignal(s)
        if signal.getsignal(s) in (signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler, None)
        else "own"
        for s in signal.Signals
        if s.name not in ("SIGUSR2", "SIGTERM")
    },
    signal.pthread_sigmask(signal.SIG_BLOCK, []),
)
