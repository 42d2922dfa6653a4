"""A model with a train_step of its own, callbacks, and a distribution strategy."""

import keras
import numpy
import tensorflow as tf

keras.utils.set_random_seed(1)
runs = []


class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.layer = keras.layers.Dense(1)

    def call(self, x):
        return self.layer(x)

    def train_step(self, data):
        runs.append(1)
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=False))
        return {"loss": loss}


class Note(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        runs.append((batch, sorted(logs)))


with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
    model = Model()
    model.compile(optimizer=keras.optimizers.SGD(0.01))
x, y = numpy.ones((24, 2), "float32"), numpy.ones((24, 1), "float32")
history = model.fit(x, y, batch_size=2, epochs=2, verbose=0, callbacks=[Note()])
print([round(each, 4) for each in history.history["loss"]], len(runs), runs[:3], model.optimizer.iterations.numpy())
print(type(model.train_step).__name__, model.train_step.__func__ is Model.train_step, type(Note.on_train_batch_end))
