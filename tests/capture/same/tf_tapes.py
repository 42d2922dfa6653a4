"""Gradient tapes: values, arguments, higher orders, custom gradients and exceptions."""

import inspect

import tensorflow as tf
from _show import show, show_frames

w = tf.Variable([1.0, 2.0])
counts = []


@tf.custom_gradient
def squared(x):
    def grad(upstream):
        counts.append(1)
        return 2 * x * upstream

    return x * x, grad


for i in range(10):
    with tf.GradientTape(persistent=True) as tape:
        with tf.GradientTape() as inner:
            loss = tf.reduce_sum(w**3)
        slope = inner.gradient(loss, w)
        other = tf.reduce_sum(squared(w))
    first = tape.gradient(other, [w], output_gradients=tf.constant(2.0))
    second = tape.gradient(target=slope, sources=w, unconnected_gradients="zero")
    w.assign_sub(0.01 * slope)
show("values", lambda: (first[0].numpy().round(3), second.numpy().round(3), len(counts)))
with tf.GradientTape(persistent=True) as tape:
    y = w * w
show("jacobian", lambda: tape.jacobian(y, w).numpy().round(3).tolist())
show("jacobian in steps", lambda: tape.jacobian(y, w, experimental_use_pfor=False).numpy().round(3).tolist())
show("unconnected", lambda: tape.gradient(y, tf.Variable(1.0)))
show(
    "signature",
    lambda: (
        inspect.signature(tf.GradientTape.gradient),
        tf.GradientTape.gradient.__qualname__,
        inspect.getsource(tf.GradientTape.gradient)[:30],
    ),
)
with tf.autodiff.ForwardAccumulator(w, tf.ones(2)) as forward:
    z = w**2
show("forward", lambda: forward.jvp(z).numpy().round(3))
with tf.GradientTape() as once:
    z = tf.reduce_sum(w)
once.gradient(z, w)
show_frames("twice", lambda: once.gradient(z, w))
show_frames("integers", lambda: tape.gradient(y))
once.gradient(z, w)
