"""Keras: what its callbacks see, in which order, what its optimizers are, and an exception in a callback."""

import inspect
import pickle

import keras
import numpy as np
from _show import depth, show

keras.utils.set_random_seed(0)
events, traces = [], []


class Watcher(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        events.append(("begin", batch, logs))

    def on_train_batch_end(self, batch, logs=None):
        events.append(("end", batch, sorted(logs)))

    def on_epoch_end(self, epoch, logs=None):
        events.append(("epoch", epoch, len(self.model.history.epoch)))


class Layer(keras.layers.Dense):
    def call(self, inputs):
        traces.append("call")
        return super().call(inputs)


x, y = np.ones((24, 4), "float32"), np.zeros((24, 1), "float32")
for kind in (keras.optimizers.SGD, keras.optimizers.Adam):
    model = keras.Sequential([Layer(4, activation="relu"), Layer(1)])
    model.compile(kind(0.01), "mse")
    history = model.fit(x, y, batch_size=4, epochs=3, verbose=0, callbacks=[Watcher()], validation_split=0.25)
    show("history", lambda: {key: [round(v, 4) for v in values] for key, values in history.history.items()})
show("events", lambda: (len(events), events[:4], events[-3:]))
show("traces", lambda: len(traces))
for owner, name in (
    (keras.callbacks.CallbackList, "on_train_batch_begin"),
    (keras.callbacks.CallbackList, "on_train_batch_end"),
    (keras.optimizers.Adam, "apply"),
    (keras.optimizers.Adam, "apply_gradients"),
):
    function = getattr(owner, name)
    show(name, lambda: (function.__name__, function.__qualname__, function.__module__, inspect.signature(function)))
    show(
        name,
        lambda: (
            inspect.isfunction(function),
            inspect.getsource(function)[:40],
            pickle.loads(pickle.dumps(function)) is function,
        ),
    )
    show(
        name,
        lambda: (
            function,
            sorted(vars(function)),
            function == getattr(owner, name),
            hash(function) == hash(getattr(owner, name)),
        ),
    )
callbacks = keras.callbacks.CallbackList([Watcher()], model=model)
for i in range(6):
    callbacks.on_train_batch_begin(batch=i)
    callbacks.on_train_batch_end(i, logs={"loss": 1.0})
show(
    "own list",
    lambda: (
        len(events),
        callbacks.on_train_batch_end.__name__,
        callbacks.on_train_batch_end == callbacks.on_train_batch_end,
    ),
)
optimizer = keras.optimizers.Adam(0.1)
variables = [keras.Variable(np.ones(2, "float32"))]
for i in range(8):
    optimizer.apply([np.ones(2, "float32") * i], trainable_variables=variables)
    optimizer.apply_gradients(grads_and_vars=[(np.ones(2, "float32"), variables[0])])
show("variables", lambda: (variables[0].numpy().round(4), int(optimizer.iterations)))
show(
    "scaled",
    lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)).apply([np.ones(2, "float32")], variables),
)
show(
    "stateless",
    lambda: [
        np.round(v, 3) for v in optimizer.stateless_apply(optimizer.variables, [np.ones(2, "float32")], variables)[0]
    ],
)
show("config", lambda: sorted(optimizer.get_config()))


class Failing(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 3:
            print("depth", depth() > 3)
            raise ValueError("stopped by the program")


model.fit(x, y, batch_size=4, verbose=0, callbacks=[Failing()])
