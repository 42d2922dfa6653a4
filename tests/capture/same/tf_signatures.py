# modes: run watch
# timeout: 300
import tempfile

import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
traced = []


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable([1.0, 2.0])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, x):
        traced.append("call")
        return tf.reduce_sum(self.w[: tf.shape(x)[0]] * x)

    @tf.function(reduce_retracing=True)
    def step(self, x, training=False, *, call=1):
        traced.append(("step", training, call))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((self.w * x) ** 2)
        if training:
            self.w.assign_sub(0.01 * tape.gradient(loss, self.w))
        return loss


net = Net()
for i in range(8):
    net.step(tf.ones(2), training=True, call=1)
print(traced, net.step.experimental_get_tracing_count(), net(tf.ones(1)).numpy(), net.w.numpy())
concrete = net.step.get_concrete_function(tf.TensorSpec([2]), training=False)
print(
    concrete.structured_input_signature, [op.type for op in concrete.graph.get_operations()][:5], net.step.function_spec
)
folder = tempfile.mkdtemp()
tf.saved_model.save(net, folder, signatures=net.__call__.get_concrete_function())
loaded = tf.saved_model.load(folder)
print(list(loaded.signatures), loaded(tf.ones(2)).numpy(), loaded.signatures["serving_default"](x=tf.ones(2)))


def branches(x):
    for i in tf.range(3):
        if x > 2.0:  # noqa: SIM108 - AutoGraph's
            x = x - 1.0
        else:
            x = x + tf.cast(i, tf.float32)
    return x


print(tf.function(branches)(tf.constant(1.0)).numpy(), "for_stmt" in tf.autograph.to_code(branches))


@tf.custom_gradient
def clipped(x):
    return x * 3, lambda g: tf.clip_by_value(g, -1.0, 1.0)


with tf.GradientTape(persistent=True) as tape:
    x = tf.Variable([1.0, -2.0])
    y = clipped(x) ** 2
    z = tf.recompute_grad(tf.tanh)(x)
print(tape.gradient(y, x).numpy(), tape.jacobian(y, x).numpy().shape, tape.gradient(z, x).numpy())
with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as accumulator:
    print(accumulator.jvp(x * x).numpy())
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    shared = tf.Variable(1.0)


@tf.function
def replica():
    traced.append("replica")
    shared.assign_add(1.0)
    return tf.distribute.get_replica_context().all_reduce("sum", shared)


print(strategy.run(replica).values[0].numpy(), traced.count("replica"))
data = tf.data.Dataset.from_generator(lambda: iter(range(5)), output_signature=tf.TensorSpec([], tf.int32))
data = data.map(lambda v: tf.py_function(lambda u: u * 2, [v], tf.int32)).batch(2).prefetch(1).enumerate()
print([(int(i), batch.numpy().tolist()) for i, batch in data], data.element_spec)
try:
    net(tf.ones([2, 2]))
except (TypeError, ValueError) as error:
    print(type(error).__name__, str(error).splitlines()[0])
