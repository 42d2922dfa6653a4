# modes: run watch
"""Keras: own training steps, tf.function around them, saving and loading, distribution."""

import tempfile

import keras
import numpy as np
import tensorflow as tf
from _show import show

keras.utils.set_random_seed(0)
traces = []


class Model(keras.Model):
    def __init__(self, units=1):
        super().__init__()
        self.dense = keras.layers.Dense(units)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        traces.append("train_step")
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x) - y) ** 2)
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables, strict=True)
        )
        return {"loss": loss}


x, y = np.ones((16, 3), "float32"), np.zeros((16, 1), "float32")
model = Model()
model.compile(keras.optimizers.Adam(0.01))
show("fit", lambda: [round(v, 4) for v in model.fit(x, y, batch_size=4, epochs=3, verbose=0).history["loss"]])
model.compile(keras.optimizers.SGD(0.01), steps_per_execution=2)
show("several", lambda: [round(v, 4) for v in model.fit(x, y, batch_size=4, epochs=3, verbose=0).history["loss"]])
show("on batch", lambda: round(float(model.train_on_batch(x, y)), 4))
optimizer = keras.optimizers.Adam(0.01)
optimizer.build(model.trainable_variables)


@tf.function
def step(x, y, optimizer_name="adam"):
    traces.append("step")
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    optimizer.apply(tape.gradient(loss, model.trainable_variables))
    return loss


for _ in range(15):
    loss = step(x, y)
show(
    "own loop",
    lambda: (round(float(loss), 5), traces, step.experimental_get_tracing_count(), int(optimizer.iterations)),
)
for _ in range(6):  # at once, without a graph
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    optimizer.apply_gradients(
        list(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True))
    )
show("at once", lambda: round(float(loss), 5))
with tempfile.TemporaryDirectory() as folder:
    functional = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    functional.compile("sgd", "mse")
    functional.fit(x, y, verbose=0)
    functional.save(f"{folder}/model.keras")
    show("loaded", lambda: np.allclose(keras.models.load_model(f"{folder}/model.keras")(x), functional(x)))
    module = tf.Module()
    module.f = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec([None])])
    tf.saved_model.save(module, folder)
    show("saved model", lambda: tf.saved_model.load(folder).f(tf.ones(2)).numpy())
    show("exported", lambda: functional.export(f"{folder}/export", verbose=False))
strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
with strategy.scope():
    mirrored = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
    mirrored.compile("sgd", "mse")
show("mirrored", lambda: [round(v, 4) for v in mirrored.fit(x, y, batch_size=4, verbose=0).history["loss"]])


@tf.function
def distributed(x):
    return strategy.run(lambda x: x + 1, args=(x,))


for i in range(6):
    value = distributed(tf.constant(i))
show("distributed", lambda: value)
