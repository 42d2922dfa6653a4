"""tf.function: how often it traces, its concrete functions, AutoGraph's code."""

import tensorflow as tf

traced = []


@tf.function
def step(x):
    traced.append(x.shape)
    if tf.reduce_sum(x) > 0:
        return x * 2
    return x


for n in range(12):
    step(tf.ones((n % 3 + 1,)))
print(len(traced), step.experimental_get_tracing_count(), type(step).__name__, step.python_function.__name__)
print(len(step._list_all_concrete_functions()), step.pretty_printed_concrete_signatures().count("Input"))
print(tf.autograph.to_code(step.python_function)[:80])


class Module(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def call(self, x):
        traced.append(1)
        return x + 1


module = Module()
for _ in range(8):
    module.call(tf.ones(2))
tf.saved_model.save(module, "saved")
print(tf.saved_model.load("saved").call(tf.ones(3)).numpy(), len(traced))
with tf.GradientTape() as tape:
    v = tf.Variable(2.0)
    y = step(tf.reshape(v, (1,)))
print(tape.gradient(y, v).numpy())
