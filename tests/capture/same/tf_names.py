import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
import random
import numpy as np

tf.keras.utils.set_random_seed(3)
tf.config.experimental.enable_op_determinism()
w = tf.Variable(tf.random.normal((8, 8)))


@tf.function
def step(x):
    with tf.GradientTape() as t:
        loss = tf.reduce_mean(tf.tanh(x @ w) ** 2 + tf.random.uniform(()))
    g = t.gradient(loss, w)
    w.assign_sub(0.1 * g)
    return loss


for i in range(14):
    l = step(tf.random.normal((4, 8)))
c = step.get_concrete_function(tf.TensorSpec((4, 8)))
print(c.name.decode() if isinstance(c.name, bytes) else c.name, step.experimental_get_tracing_count(), float(l))
print([o.name for o in c.graph.get_operations()][:8], tf.compat.v1.get_default_graph().version)
writer = tf.summary.create_file_writer("sum")
with writer.as_default():
    tf.summary.trace_on(graph=True, profiler=False)
    step(tf.zeros((4, 8)))
    tf.summary.trace_export("g", step=0)
    for i in range(12):
        tf.summary.scalar("x", step(tf.zeros((4, 8))), step=i)
from tensorflow.python.eager import context

print(
    context.context()._seed,
    context.context()._rng.randint(0, 10**6),
    tf.random.uniform(()).numpy(),
    random.random(),
    np.random.rand(),
)
tf.config.run_functions_eagerly(True)
for i in range(6):
    l = step(tf.zeros((4, 8)))
tf.config.run_functions_eagerly(False)
tf.debugging.enable_check_numerics()
try:
    for i in range(6):
        l = step(tf.ones((4, 8)) * (float("nan") if i == 4 else 1))
except tf.errors.InvalidArgumentError as e:
    print("nan found", "Tensor had NaN" in str(e) or "NaN" in str(e))
tf.debugging.disable_check_numerics()
ds = (
    tf.data.Dataset.range(40)
    .shuffle(10, seed=1)
    .map(lambda x: x * 2, num_parallel_calls=tf.data.AUTOTUNE)
    .batch(4)
    .prefetch(1)
)
print([int(b.numpy().sum()) for b in ds])
m = tf.Module()
m.w = w
m.f = step
import shutil

shutil.rmtree("sum")
tf.saved_model.save(m, "sm")
print(sorted(tf.saved_model.load("sm").signatures))
