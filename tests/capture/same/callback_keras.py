# modes: callback
# timeout: 300
"""Keras fits and evaluates: losses, tracings, weights and what the program's own callback is called with."""

import os

import keras
import numpy as np

added = []
if logdir := os.environ.pop("STEPSCOPE_SAME_LOGDIR", ""):
    from stepscope.keras import ProfilerCallback

    added = [ProfilerCallback(logdir)]

keras.utils.set_random_seed(0)
calls = []


class Note(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        calls.append((batch, sorted(logs)))

    def on_test_end(self, logs=None):
        calls.append(("tested", sorted(logs)))


x = np.arange(80, dtype="float32").reshape(40, 2) / 80
model = keras.Sequential([keras.layers.Dense(3, activation="tanh"), keras.layers.Dropout(0.2), keras.layers.Dense(1)])
model.compile("adam", "mse", metrics=["mae"])
history = model.fit(
    x, x.sum(1), batch_size=4, epochs=3, validation_split=0.2, verbose=0, callbacks=[Note(), *added], shuffle=True
)
print({name: [round(float(each), 5) for each in values] for name, values in history.history.items()})
print(len(calls), calls[:2], calls[8:11], model.train_function.experimental_get_tracing_count())
print([round(float(each), 5) for each in model.evaluate(x, x.sum(1), verbose=0, callbacks=added)])
print([round(float(np.sum(each)), 5) for each in model.get_weights()], int(model.optimizer.iterations))
