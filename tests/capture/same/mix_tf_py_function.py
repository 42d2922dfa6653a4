# modes: run watch
# timeout: 240
"""Python called from TensorFlow's graph and its input threads; tracings are counted."""

import threading

import numpy as np
import tensorflow as tf

traced, seen = [], []


def read(at):
    seen.append(threading.current_thread() is threading.main_thread())
    return np.float32(at) / 10


data = (
    tf.data.Dataset.range(20).map(lambda at: tf.numpy_function(read, [at], tf.float32), num_parallel_calls=2).batch(4)
)
weight = tf.Variable(1.0)
optimizer = tf.keras.optimizers.SGD(0.1)


@tf.function(reduce_retracing=True)
def step(batch):
    traced.append(batch.shape)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.ensure_shape(batch, [None]) * weight) ** 2)
        loss += tf.py_function(lambda value: value * 2, [weight], tf.float32)
    optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
    return loss


for _ in range(2):
    for batch in data:
        loss = step(batch)
print(round(float(loss), 5), len(traced), len(seen), any(seen), step.experimental_get_tracing_count())
print(step.pretty_printed_concrete_signatures().splitlines()[0])
