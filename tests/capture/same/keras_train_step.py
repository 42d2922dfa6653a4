# modes: run watch
# timeout: 300
import tempfile

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
order = []


@keras.saving.register_keras_serializable("mine")
class Own(keras.Model):
    traced = 0

    def __init__(self, units=2, **more):
        super().__init__(**more)
        self.units, self.dense, self.out = units, keras.layers.Dense(units, "tanh"), keras.layers.Dense(1)
        self.seen = keras.metrics.Mean(name="seen")

    def call(self, x, training=False):
        return self.out(self.dense(x))

    def train_step(self, data):
        Own.traced += 1
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, self.trainable_weights), self.trainable_weights, strict=True)
        )
        self.seen.update_state(loss)
        return {"loss": loss, "seen": self.seen.result()}

    def get_config(self):
        return {**super().get_config(), "units": self.units}


class Log(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        order.append(("begin", batch))

    def on_train_batch_end(self, batch, logs=None):
        order.append(("end", batch, sorted(logs)))
        if batch == 3 and len(order) > 20:
            self.model.stop_training = True


x, y = np.ones((32, 3), "float32"), np.ones((32, 1), "float32")
model = Own()
model.compile("adam", "mse")
history = model.fit(x, y, batch_size=4, epochs=5, verbose=0, shuffle=False, callbacks=[Log()])
print(Own.traced, len(order), order[:2], order[-1], [round(each, 5) for each in history.history["loss"]])
path = tempfile.mkdtemp() + "/model.keras"
model.save(path)
again = keras.saving.load_model(path)
print(np.allclose(again.predict(x, verbose=0), model.predict(x, verbose=0)), type(again).__name__, again.units)
inputs = keras.Input((3,))
middle = keras.layers.Dense(4, name="middle")(inputs)
two = keras.Model(inputs, [keras.layers.Dense(1, name="a")(middle), keras.layers.Dense(2, name="b")(middle)])
two.compile(keras.optimizers.SGD(0.01), {"a": "mse", "b": "mae"}, steps_per_execution=2)
print(
    two.fit(x, {"a": y, "b": np.ones((32, 2))}, verbose=0).history.keys(), keras.models.clone_model(two).count_params()
)
print(
    two.train_on_batch(x[:4], {"a": y[:4], "b": np.ones((4, 2))}).__class__.__name__, two.make_train_function.__name__
)
