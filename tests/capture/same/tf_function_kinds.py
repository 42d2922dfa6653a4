# modes: run prove
"""Functions of TensorFlow that retrace less, call Python, have input signatures, are nested, copied and fail."""

import copy
import pickle
import threading
import weakref

import numpy as np
import tensorflow as tf

traces, called = [], []


@tf.function(reduce_retracing=True)
def grows(x):
    traces.append(x.shape)
    return tf.reduce_sum(x)


def host(x):
    called.append(threading.current_thread() is threading.main_thread())
    return x * 2


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)], jit_compile=False)
def step(x):
    traces.append("step")
    y = tf.py_function(host, [x], tf.float32)
    z = tf.numpy_function(lambda a: np.asarray(a) + 1, [x], tf.float32)
    tf.print("in", tf.reduce_sum(x), output_stream="file://printed.txt")
    for n in tf.range(3):
        if tf.reduce_sum(x) > 3:
            y = y + tf.cast(n, tf.float32)
    with tf.control_dependencies([tf.debugging.assert_non_negative(x)]):
        return tf.reduce_sum(y) + tf.reduce_sum(z)


variable = tf.Variable(1.0)
optimizer = tf.keras.optimizers.SGD(0.1)
for n in range(8):
    grows(tf.ones(n + 1))
    with tf.GradientTape(persistent=True) as tape:
        loss = variable * step(tf.ones(n + 1))
    optimizer.apply_gradients([(tape.gradient(loss, variable), variable)])
    print(n, round(float(loss), 3))
print(traces, len(called), grows.experimental_get_tracing_count(), step.experimental_get_tracing_count())
print(open("printed.txt").read().splitlines()[:2], step.pretty_printed_concrete_signatures())
try:
    step(-tf.ones(1))
except tf.errors.InvalidArgumentError as error:
    print(error.message.splitlines()[0])
try:
    step(tf.ones((1, 1)))
except TypeError as error:
    print(str(error).splitlines()[0][:70])


@tf.function
def leaks():
    kept.append(tf.constant(1))


kept = []
leaks()
print(type(kept[0]).__name__, weakref.ref(step)() is step, step.__name__, step.function_spec.arg_names)
try:
    print(kept[0] + 1)
except TypeError as error:
    print(type(error).__name__)


class Module(tf.Module):
    def __init__(self):
        self.v = tf.Variable(2.0)

    @tf.function
    def __call__(self, x):
        traces.append("module")
        return self.v * x


module = Module()
print([float(module(tf.constant(float(n)))) for n in range(3)], traces.count("module"))
twin = copy.deepcopy(module)
print(float(twin(tf.constant(1.0))), traces.count("module"), Module.__call__ is Module.__call__)
try:
    pickle.dumps(step)
except Exception as error:
    print(type(error).__name__)
print(
    tf.autograph.to_code(host).count("ag__"), tf.config.functions_run_eagerly(), step.get_concrete_function().name[:10]
)
strategy = tf.distribute.MirroredStrategy(["CPU:0"])
with strategy.scope():
    mirrored = tf.Variable(1.0)
print(strategy.run(tf.function(lambda: mirrored * 2)).numpy(), strategy.num_replicas_in_sync)
