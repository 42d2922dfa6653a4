import os

import numpy as np

np.random.seed(1)
print(np.random.rand(3), np.geterr(), os.environ.get("OPENBLAS_NUM_THREADS"), np.show_config.__name__)
