# modes: run watch prove
# timeout: 300
"""A model with its own losses, metrics and batches, eager and compiled, stopped early, in a thread, saved and cloned."""

import os
import tempfile
import threading

import keras
import numpy as np

keras.utils.set_random_seed(0)
traced = []


class Model(keras.Model):
    def __init__(self, units=4, **more):
        super().__init__(**more)
        self.units, self.inner, self.last = units, keras.layers.Dense(units, activation="tanh"), keras.layers.Dense(1)
        self.own = keras.metrics.Mean(name="own")

    def call(self, x, training=False):
        traced.append(bool(training))
        y = self.inner(x)
        self.add_loss(keras.ops.mean(y**2) * 0.01)
        return self.last(y)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = super().compute_loss(x, y, y_pred, sample_weight, training=training)
        self.own.update_state(loss)
        return loss

    def get_config(self):
        return {"units": self.units}


class Sequence(keras.utils.PyDataset):
    def __len__(self):
        return 6

    def __getitem__(self, at):
        return np.full((4, 3), at / 6, "float32"), np.full((4, 1), at, "float32")


class Notes(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.said = []

    def on_train_batch_end(self, batch, logs=None):
        self.said.append((batch, sorted(logs)))

    def on_epoch_end(self, epoch, logs=None):
        self.said.append((epoch, {name: round(float(each), 4) for name, each in logs.items()}))


def fit(eager):
    keras.utils.set_random_seed(1)
    model, notes = Model(), Notes()
    model.compile("sgd", "mse", metrics=["mae"], run_eagerly=eager)
    stop = keras.callbacks.EarlyStopping(monitor="own", mode="min", patience=0, min_delta=1e9)
    history = model.fit(
        Sequence(),
        epochs=5,
        verbose=0,
        callbacks=[notes, stop, keras.callbacks.LambdaCallback(on_train_end=lambda logs: notes.said.append("end"))],
    )
    print(eager, notes.said[-9:], sorted(history.history), history.epoch, stop.stopped_epoch)
    return model


model = fit(False)
print(len(traced), traced[:6])
traced.clear()
fit(True)
print(len(traced))
thread = threading.Thread(target=fit, args=(False,))
thread.start()
thread.join()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "m.keras")
    model.save(path)
    again = keras.models.load_model(path, custom_objects={"Model": Model})
    print(
        np.allclose(again.predict(np.ones((2, 3)), verbose=0), model.predict(np.ones((2, 3)), verbose=0)),
        again.count_params(),
    )
print(
    [type(each).__name__ for each in (model.fit, model.optimizer.apply, model.train_step)], model.train_function is None
)
print(model.evaluate(Sequence(), verbose=0, return_dict=True).keys(), threading.active_count())
