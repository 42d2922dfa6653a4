import os
import threading

import jax

print(sorted(os.environ), threading.enumerate(), jax.jit(lambda x: x + 1)(1))
