# timeout: 300
# modes: run prove
"""A model with a `train_step` of its own, a subclassed optimizer, a callback, a metric; saved, cloned, copied."""

import copy
import os
import pickle

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
traces = []


class Adaptive(keras.optimizers.SGD):
    def update_step(self, gradient, variable, learning_rate):
        traces.append("update")
        super().update_step(gradient * 0.5, variable, learning_rate)


@keras.saving.register_keras_serializable()
class Own(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(1)
        self.seen = keras.metrics.Mean(name="seen")

    def call(self, x, training=False):
        traces.append("call")
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        self.seen.update_state(loss)
        return {"loss": loss, "seen": self.seen.result()}


class Watches(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        batches.append((batch, sorted(logs)))
        if batch == 5:
            self.model.stop_training = self.params["epochs"] == 3


batches = []
model = Own()
model.compile(optimizer=Adaptive(0.05))
x, y = np.arange(32.0, dtype="float32").reshape(32, 1) / 32, np.ones((32, 1), "float32")
history = model.fit(x, y, batch_size=4, epochs=2, verbose=0, callbacks=[Watches()], shuffle=False)
print({k: [round(float(v), 4) for v in each] for k, each in history.history.items()}, len(batches), batches[0], traces)
print(
    model.train_function.experimental_get_tracing_count(),
    model.optimizer.iterations.numpy(),
    type(model.optimizer).__name__,
)
model.save("own.keras")
again = keras.saving.load_model("own.keras", custom_objects={"Adaptive": Adaptive})
print(np.allclose(again.predict(x, verbose=0), model.predict(x, verbose=0)), type(again).__name__)
print(
    len(keras.callbacks.CallbackList([Watches()], model=model).callbacks),
    pickle.loads(pickle.dumps(model.get_weights()))[0].shape,
)
print(copy.deepcopy(model).count_params(), [each.name for each in model.metrics])
model.run_eagerly = True
model.fit(x, y, batch_size=16, epochs=1, verbose=2, shuffle=False)
print(len(traces), model.evaluate.__name__, keras.optimizers.Optimizer.apply.__name__)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8).prefetch(1)
again.fit(data, epochs=1, verbose=0)
print(again.optimizer.iterations.numpy(), again.train_on_batch(x, y, return_dict=True).keys())
