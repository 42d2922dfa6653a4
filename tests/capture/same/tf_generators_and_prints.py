# modes: run watch prove
# timeout: 300
"""tf.data from generators, py_function, numpy_function, custom gradients, prints, asserts and a mirrored strategy."""

import sys

import numpy as np
import tensorflow as tf

seen = []


def rows():
    try:
        for at in range(40):
            yield np.full(3, at, "float32")
    finally:
        seen.append("generator closed")


@tf.custom_gradient
def half(x):
    seen.append("half traced")
    return x / 2, lambda up: up / 4


@tf.function(reduce_retracing=True)
def step(weights, batch):
    seen.append(f"traced {batch.shape}")
    with tf.GradientTape() as tape:
        y = half(tf.linalg.matvec(batch, weights))
        noisy = tf.py_function(lambda z: seen.append(("py", type(z).__name__)) or z + 1, [y], tf.float32)
        other = tf.numpy_function(lambda z: np.float32(z.sum()), [y], tf.float32)
        loss = tf.reduce_mean((noisy - y) * y) + 0 * other
    tf.debugging.assert_all_finite(loss, "finite")
    if loss > 1e9:
        tf.print("never")
    weights.assign_sub(1e-4 * tape.gradient(loss, weights))
    return loss


weights = tf.Variable([1.0, 2.0, 3.0])
data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((3,))).map(lambda x: x / 9).batch(4)
for batch in data.prefetch(2).take(7):
    loss = step(weights, batch)
print(
    round(float(loss), 5),
    step.experimental_get_tracing_count(),
    [each for each in seen if isinstance(each, str)],
    len(seen),
)
tf.print("printed", weights, output_stream=sys.stdout)
print(step.pretty_printed_concrete_signatures().count("\n"), step.get_concrete_function(weights, batch).name[:14])
tf.config.run_functions_eagerly(True)
print(round(float(step(weights, tf.ones((2, 3)))), 5), step.experimental_get_tracing_count())
tf.config.run_functions_eagerly(False)
try:
    step(weights, tf.fill((2, 3), float("nan")))
except tf.errors.InvalidArgumentError as error:
    print(type(error).__name__, "finite" in str(error))
strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
with strategy.scope():
    mirrored = tf.Variable(1.0)
print([float(strategy.reduce("SUM", strategy.run(lambda: mirrored.assign_add(1.0)), axis=None)) for _ in range(5)])
print(tf.autograph.to_code(step.python_function).count("\n"), type(step).__name__, step.python_function.__name__)
