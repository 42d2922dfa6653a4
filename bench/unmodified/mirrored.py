"""TensorFlow: two replicas under MirroredStrategy, with a loop of its own."""

import tensorflow as tf
from clock import CLOCK

(cpu,) = tf.config.list_physical_devices("CPU")[:1]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
tf.random.set_seed(0)

with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(256, "relu"), tf.keras.layers.Dense(10)])
    model.build((None, 128))
    optimizer = tf.keras.optimizers.SGD(0.01)

rows = tf.data.Dataset.from_tensor_slices((tf.random.normal((512, 128)), tf.zeros((512,), tf.int32)))
data = strategy.experimental_distribute_dataset(rows.repeat().batch(64))


@tf.function
def train(batch):
    """One update of both replicas."""

    def update(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True))
            loss = tf.reduce_sum(losses) / 64
        slopes = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
        return loss

    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(update, args=batch), axis=None)


for number, batch in enumerate(data):
    loss = train(batch)
    CLOCK.tick()
    if number % 20 == 19:
        print(f"step {number}: {loss.dtype.name}")
    if number == 59:
        break
