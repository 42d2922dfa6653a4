import os
import threading

import jax

print(sorted(os.environ), len(threading.enumerate()), jax.jit(lambda x: x + 1)(1))
