# modes: run api
"""tf.function: what it is, how often it traces, its arguments, gradients and exceptions."""

import copy
import inspect
import pickle
import warnings

import tensorflow as tf
from _show import depth, show, show_frames

tf.get_logger().setLevel("ERROR")
warnings.simplefilter("always")
traces = []


@tf.function
def f(x, call=1, self=2, function=3, args=4):
    """Adds."""
    traces.append(depth() > 0)
    if x > 0:
        x = x + 1
    return x * call + self + function + args


@tf.function(reduce_retracing=True)
def reduced(x):
    traces.append("reduced")
    return tf.reduce_sum(x)


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def signed(x):
    traces.append("signed")
    for _ in tf.range(3):
        x = x * 2
    return x


class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable([1.0, 2.0])

    @tf.function
    def step(self, x, optimizer=None):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((self.w * x) ** 2)
        self.w.assign_sub(0.1 * tape.gradient(target=loss, sources=self.w))
        return loss


model = Model()
for i in range(12):
    f(tf.constant(i), call=5)
    f(tf.constant(float(i)), self=7)
    f(i, args=1)
    reduced(tf.ones(i + 1))
    signed(tf.ones(i + 1))
    model.step(tf.constant([0.1, 0.2]))
show(
    "traces",
    lambda: (
        len(traces),
        f.experimental_get_tracing_count(),
        reduced.experimental_get_tracing_count(),
        model.step.experimental_get_tracing_count(),
    ),
)
show(
    "values",
    lambda: (f(tf.constant(1), call=5).numpy(), signed(tf.ones(2)).numpy().tolist(), model.w.numpy().round(3).tolist()),
)
show(
    "type",
    lambda: (
        type(f).__name__,
        isinstance(f, tf.types.experimental.PolymorphicFunction),
        f.__name__,
        f.__doc__,
        f.__wrapped__.__name__,
    ),
)
show(
    "class",
    lambda: (
        type(f).__call__.__name__,
        inspect.signature(type(f).__call__),
        inspect.signature(f),
        inspect.getsource(type(f).__call__)[:40],
    ),
)
show("vars", lambda: (sorted(vars(f)), sorted(vars(model.step))))
show("bound", lambda: (model.step is model.step, model.step == model.step, type(model.step).__name__))
show("pretty", lambda: f.pretty_printed_concrete_signatures())
show("concrete", lambda: f.get_concrete_function(tf.constant(1), call=5).structured_input_signature)
show("copied", lambda: copy.copy(signed)(tf.ones(1)).numpy())
show("pickled", lambda: pickle.loads(pickle.dumps(type(f))) is type(f))
show("code", lambda: tf.autograph.to_code(f.python_function)[:30])
show(
    "eager",
    lambda: (tf.config.run_functions_eagerly(True), f(tf.constant(2)).numpy(), tf.config.run_functions_eagerly(False))[
        1
    ],
)
show("nested", lambda: tf.function(lambda x: signed(x) + reduced(x))(tf.ones(3)).numpy())
show(
    "mapped",
    lambda: [
        int(x)
        for x in tf.data.Dataset.range(4).map(
            lambda x: f(
                x,
                call=tf.constant(1, tf.int64),
                self=tf.constant(1, tf.int64),
                function=tf.constant(1, tf.int64),
                args=tf.constant(1, tf.int64),
            )
        )
    ],
)


@tf.function
def wrong(x):
    return tf.matmul(x, tf.ones([7, 7]))


@tf.function
def raising(x):
    raise KeyError("in the program")


for _ in range(4):
    show_frames("wrong", lambda: wrong(tf.ones([2, 2])))
    show_frames("raising", lambda: raising(1))
    show_frames("unexpected", lambda: f(unknown=1))
    show_frames("run", lambda: tf.function(lambda x: tf.debugging.assert_equal(x, 1))(tf.constant(2)))
raising(2)
