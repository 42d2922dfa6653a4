# timeout: 1200
"""Wrappers of TensorFlow and Keras, composed at random: values and how often the innermost function is traced."""

import functools
import random
import sys
import tempfile

import keras
import tensorflow as tf
from _show import clean

tf.get_logger().setLevel("ERROR")
traces = []


def base(x):
    traces.append(1)
    return tf.sin(x) * 0.5 + x


def grad(f):
    def slope(x):
        x = tf.convert_to_tensor(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x))
        return tape.gradient(y, x)

    return slope


def jacobian(f):
    def diagonal(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tf.linalg.diag_part(tape.jacobian(y, x, experimental_use_pfor=False))

    return diagonal


def custom(f):
    @tf.custom_gradient
    def made(x):
        return f(x), lambda g: g * 3.0

    return made


def branches(f):
    def choose(x):
        if tf.reduce_sum(x) > 0:
            x = f(x)
        return x

    return choose


def updated(f):
    variable = tf.Variable(tf.zeros(3), trainable=True)
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build([variable])

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(f(variable + x))
        optimizer.apply([tape.gradient(loss, variable)])
        return x + variable * 0.0

    return step


def saved(f):
    module = tf.Module()
    module.f = tf.function(f, input_signature=[tf.TensorSpec([3])])
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        module.loaded = tf.saved_model.load(folder)
    return lambda x: (module, module.loaded.f(x))[1]


def fitted(f):
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Lambda(f)(keras.layers.Dense(3, kernel_initializer="ones")(inputs)))
    model.compile("sgd", "mse")

    def step(x):
        model.fit(x[None], x[None], epochs=2, verbose=0)
        return model(x[None])[0]

    return step


def mirrored(f):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    return lambda x: strategy.reduce("SUM", strategy.run(f, (x,)), axis=None)


WRAPPERS = {
    "fitted": fitted,
    "mirrored": mirrored,
    "function": tf.function,
    "function reduced": functools.partial(tf.function, reduce_retracing=True),
    "function signed": functools.partial(tf.function, input_signature=[tf.TensorSpec([None])]),
    "function plain": functools.partial(tf.function, autograph=False),
    "function keyword": lambda f: (lambda g: lambda x: g(self=x, call=1.0))(
        tf.function(lambda self, call: f(self) * call)
    ),
    "grad": grad,
    "jacobian": jacobian,
    "custom": custom,
    "recompute": tf.recompute_grad,
    "branches": branches,
    "map": lambda f: lambda x: tf.map_fn(f, x),
    "vectorized": lambda f: lambda x: tf.vectorized_map(f, x),
    "loop": lambda f: lambda x: tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, f(x)), (0, x))[1],
    "python": lambda f: lambda x: tf.ensure_shape(tf.py_function(f, [x], tf.float32), x.shape),
    "layer": lambda f: keras.layers.Lambda(f),
    "dataset": lambda f: lambda x: next(iter(tf.data.Dataset.from_tensors(x).map(f))),
    "updated": updated,
    "saved": saved,
    "concrete": lambda f: tf.function(f).get_concrete_function(tf.TensorSpec([3])),
}
first, count = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (0, 30)
for seed in range(first, first + count):
    chosen = random.Random(seed)
    names = [chosen.choice(list(WRAPPERS)) for _ in range(chosen.randint(2, 5))]
    traces.clear()
    print(seed, names, end=" ")
    try:
        f = base
        for name in names:
            f = WRAPPERS[name](f)
        results = [f(tf.constant([1.0, 2.0, 3.0])) for _ in range(4)]
        print([round(float(tf.reduce_sum(each)), 3) for each in results], len(traces))
    except Exception as error:
        print("raises", type(error).__name__, clean(str(error))[:60].splitlines()[:1], len(traces))
