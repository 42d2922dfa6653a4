"""Keras: a model with a `train_step` of its own, trained by `fit`."""

import keras
import numpy as np
import tensorflow as tf
from clock import CLOCK

keras.utils.set_random_seed(0)


class Denoiser(keras.Model):
    """Takes noise from what it is given."""

    def __init__(self):
        super().__init__()
        self.net = keras.Sequential([keras.layers.Dense(256, "relu"), keras.layers.Dense(64)])

    def call(self, x):
        """Without noise."""
        return self.net(x)

    def train_step(self, data):
        """One update, with new noise."""
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(data + tf.random.normal(tf.shape(data))) - data) ** 2)
        slopes = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(slopes, self.trainable_variables, strict=True))
        return {"loss": loss}


class Ticks(keras.callbacks.Callback):
    """The script's own clock."""

    def on_train_batch_end(self, batch, logs=None):
        """A batch is done."""
        CLOCK.tick()


model = Denoiser()
model.compile(optimizer="adam")
past = model.fit(np.ones((60 * 64, 64), np.float32), batch_size=64, epochs=1, verbose=0, callbacks=[Ticks()])
print(f"loss {past.history['loss'][-1]:.1f}")
