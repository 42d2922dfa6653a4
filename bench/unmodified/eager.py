"""TensorFlow: an eager loop with a Keras optimizer, which prints each loss."""

import tensorflow as tf
from clock import CLOCK

tf.random.set_seed(0)
weights = tf.Variable(tf.random.normal((256, 256)) / 16)
x = tf.random.normal((128, 256))
optimizer = tf.keras.optimizers.SGD(0.01)

for number in range(40):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.tanh(x @ weights) - x))
    optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
    print(f"step {number}: loss {float(loss):.2f}")
    CLOCK.tick()
