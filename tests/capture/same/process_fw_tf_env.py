import threading

import tensorflow as tf

print(
    tf.config.threading.get_intra_op_parallelism_threads(),
    len(threading.enumerate()),
    int(tf.function(lambda x: x + 1)(1)),
)
