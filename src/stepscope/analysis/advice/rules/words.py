"""What to do about a class of bottleneck, in words that rules of several files say, and the table of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stepscope.analysis.advice.rule import Actions, Beside, Once

SKIP = "skip it if its result is not used: a loss with weight zero, a metric that nobody reads"
RARELY = "evaluate every N steps instead of in every step"
ONCE = "compute results that do not change from step to step once, and keep them"
FOR_REPORTS = (
    "log, evaluate metrics and call callbacks every N steps, not in every step",
    "compute metrics inside the compiled step, or with NumPy instead of loops over Python numbers",
    "move work that the step does not need to another thread",
)
"""For what the step does not need."""
SLEEPS = "it sleeps, as for a server, a disk, a lock or time.sleep: let another thread wait for that, ahead of the step"
AT_ONCE: Actions = {
    "tensorflow": ("tf.stack and one op, tf.gather, tf.math.segment_sum, or tf.vectorized_map",),
    "jax": ("jax.vmap, x[rows], jax.ops.segment_sum, or one split of keys",),
    "pytorch": ("torch.stack and one op with dim=, x[rows], index_add_ or scatter_reduce, or torch.vmap",),
    "": ("put what they work on into one array",),
}
"""Instead of a loop over elements."""
FEWER_LAUNCHES: Actions = {
    "tensorflow": (
        "compile the step as a whole: tf.function(jit_compile=True), which fuses small kernels",
        "use larger batches, and model.compile(steps_per_execution=N)",
    ),
    "jax": ("put the whole step under one jax.jit", "jax.lax.scan over several steps, or larger batches"),
    "pytorch": (
        "torch.compile(model, mode='reduce-overhead'), which fuses kernels and replays CUDA graphs",
        "use larger batches",
    ),
    "": ("launch fewer, larger pieces of device work", "use larger batches"),
}
FRAGMENTED: Actions = {
    "tensorflow": ("TF_GPU_ALLOCATOR=cuda_malloc_async", "keep shapes constant: pad, or drop the last small batch"),
    "jax": (
        "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async, or XLA_PYTHON_CLIENT_MEM_FRACTION=.95",
        "keep shapes constant: pad, or bucket lengths into a few sizes",
    ),
    "pytorch": (
        "PYTORCH_ALLOC_CONF=expandable_segments:True (before PyTorch 2.9: PYTORCH_CUDA_ALLOC_CONF)",
        "keep shapes constant: pad, or bucket lengths into a few sizes",
    ),
    "": ("keep shapes constant, so that freed memory can be reused",),
}

_INPUT: dict[str, Actions] = {
    "input_file_read": {
        "tensorflow": (
            "pack many small files into a few large TFRecord files",
            Beside("read several files at once: .interleave(open_file, num_parallel_calls=tf.data.AUTOTUNE)"),
            Beside("read ahead with .prefetch(tf.data.AUTOTUNE) at the end, and .cache() data that fits into memory"),
        ),
        "pytorch": (
            "pack the samples into a few large files (one memory-mapped .npy, or WebDataset shards)",
            Beside(
                "DataLoader(num_workers=4 or more, prefetch_factor=4, persistent_workers=True) reads ahead of the step"
            ),
        ),
        "": (
            "pack the samples into a few large files and read them in large chunks",
            Beside("read ahead in other threads (grain, tf.data, concurrent.futures)"),
        ),
        "python": (
            "pack the samples into a few large files and memory-map them: numpy.load(path, mmap_mode='r')",
            Beside("read ahead in other threads (concurrent.futures.ThreadPoolExecutor)"),
        ),
    },
    "input_no_prefetch": {
        "tensorflow": (
            Beside("put .prefetch(tf.data.AUTOTUNE) last in the dataset: any stage after it runs while the step waits"),
            Beside(".map(fn, num_parallel_calls=tf.data.AUTOTUNE) for maps that are not parallel yet"),
        ),
        "pytorch": (Beside("DataLoader(num_workers=4 or more, persistent_workers=True, prefetch_factor=2)"),),
        "": (Beside("prepare the next batch in another thread while the step runs, and call jax.device_put there"),),
        "python": (Beside("prepare the next batch in another thread while the step runs (concurrent.futures)"),),
    },
    "input_python": {
        "tensorflow": (
            "replace tf.py_function, tf.numpy_function and from_generator with TensorFlow ops (tf.strings, tf.io, ...)",
            "or do that work once, offline, and store the result as TFRecord",
            "if Python has to stay, threads of tf.data take turns in it: for Keras' fit, PyDataset(workers=N,"
            " use_multiprocessing=True) runs it in processes",
        ),
        "pytorch": (
            Beside(
                "spread the work of __getitem__ over processes: DataLoader(num_workers=4 or more,"
                " persistent_workers=True)"
            ),
            Once("do the work of __getitem__ once, before training, and store tensors"),
            "process whole tensors in collate_fn instead of single samples in Python",
        ),
        "": (
            "do the work once, before training, and store arrays",
            Beside("spread the work over processes (grain.DataLoader(worker_count=...), multiprocessing)"),
        ),
        "python": (
            "do the work once, before training, and store arrays",
            "or use NumPy on whole arrays instead of loops over numbers, or compile the loop",
            Beside("or spread it over processes (multiprocessing)"),
        ),
    },
    "input_preprocessing": {
        "tensorflow": (
            "map whole batches: .batch(n).map(fn, num_parallel_calls=tf.data.AUTOTUNE)",
            Beside(".map(fn, num_parallel_calls=tf.data.AUTOTUNE) for maps that are not parallel yet"),
            ".cache() data that does not change, or prepare it offline",
        ),
        "pytorch": (
            Beside("DataLoader(num_workers=4 or more, persistent_workers=True) prepares samples while the step runs"),
            "transform whole batches at once (torchvision.transforms.v2 on a batch, on the device if there is one)",
            "prepare data that does not change offline",
        ),
        "": (
            Beside("prepare batches in other threads or processes while the step runs"),
            "transform inside the compiled step (jax.jit) if it can run on the device",
            "prepare data that does not change offline",
        ),
        "python": (
            Beside("prepare batches in other threads or processes while the step runs (concurrent.futures)"),
            "use NumPy on whole batches instead of loops over samples",
            "prepare data that does not change offline",
        ),
    },
}
_SAVE: Actions = {
    "tensorflow": (
        "save every few hundred steps: keras.callbacks.ModelCheckpoint(path, save_freq=N), or"
        " tf.train.CheckpointManager(..., step_counter=step, checkpoint_interval=N)",
        "write in the background: checkpoint.save(path, options=tf.train.CheckpointOptions(enable_async=True))",
        "if NumPy writes the file, write it in another thread from copies of the variables",
    ),
    "jax": (
        "save every few hundred steps: orbax.checkpoint.CheckpointManagerOptions(save_interval_steps=N)",
        "write in the background: orbax.checkpoint.CheckpointManagerOptions(enable_async_checkpointing=True),"
        " or jax.device_get the arrays and save them in another thread",
    ),
    "pytorch": (
        "call torch.save every few hundred steps",
        "write in the background: torch.distributed.checkpoint.async_save, or copy the state and save it in a thread",
    ),
    "": ("save every few hundred steps, and in the background",),
}
_KEEP_COMPILED: Actions = {
    "tensorflow": (
        "pass changing numbers as tensors (tf.constant(x)), not as Python values: each new value causes a new trace",
        "if shapes change, declare @tf.function(input_signature=[...]) or reduce_retracing=True",
        "keep shapes constant: .batch(n, drop_remainder=True), or pad",
        "define each tf.function once, outside the loop: one defined in the step is traced in every step",
        "print(the_function.pretty_printed_concrete_signatures()) lists each trace's arguments: compare them to find"
        " what changes",
    ),
    "jax": (
        "keep shapes constant: pad, or bucket lengths into a few sizes",
        "do not list changing arguments in static_argnums; pass changing numbers as arrays",
        "define jitted functions once, outside the loop: a new lambda is compiled again",
        "jax.config.update('jax_explain_cache_misses', True) logs what changed at every call that is traced again",
    ),
    "pytorch": (
        "if shapes change: torch.compile(dynamic=True), or torch._dynamo.mark_dynamic(x, 0)",
        "pass changing numbers as tensors, not as Python values",
        "TORCH_LOGS=recompiles python train.py logs the failed guard and the argument that changed",
    ),
    "": ("keep shapes and Python arguments of the compiled step constant",),
}
_COMMUNICATE: Actions = {
    "tensorflow": (
        "reduce gradients together: tf.distribute.experimental.CommunicationOptions(bytes_per_pack=...)",
        "communicate in 16 bits",
    ),
    "jax": (
        "let jit partition the whole step: XLA then combines and overlaps collectives",
        "reduce one flat array (jax.flatten_util.ravel_pytree) instead of one per parameter",
    ),
    "pytorch": (
        "torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=25) reduces buckets of gradients during the"
        " backward pass",
        "or flatten all gradients into one buffer and reduce it once:"
        " torch.distributed.all_reduce(buffer, async_op=True)",
        "communicate in 16 bits: model.register_comm_hook(None, default_hooks.bf16_compress_hook), of"
        " torch.distributed.algorithms.ddp_comm_hooks",
    ),
    "": ("reduce gradients in large buckets while the backward pass runs", "communicate in 16 bits"),
}
_COPY_LESS: Actions = {
    "tensorflow": (
        "what stays the same: a tf.constant or tf.Variable, made once before the loop; batches: tf.data with"
        " .prefetch(tf.data.AUTOTUNE) instead of NumPy arguments",
        "store it in the dtype that the step computes in, so that nothing is converted",
    ),
    "jax": (
        "what stays the same: call jax.device_put once, before the loop; batches: put the next one on the device while"
        " the step runs",
        "store it in the dtype that the step computes in: float64 NumPy arrays are converted on every call",
    ),
    "pytorch": (
        "what stays the same: convert or move it once, before the loop (x = x.to(device, dtype)); batches:"
        " DataLoader(pin_memory=True) and .to(device, non_blocking=True)",
    ),
    "": ("copy what stays the same once, before the loop, and the next batch while the step runs",),
}
_FETCH_LESS: Actions = {
    "tensorflow": (
        "compute all values inside the tf.function, stack them and call .numpy() once every N steps",
        "keep metrics as tf.keras.metrics and read them at the end of an epoch",
    ),
    "jax": (
        "compute all values inside the jitted step, return them as one array and fetch it every N steps",
        "call jax.device_get on a whole tree instead of .item() and float() on each leaf",
    ),
    "pytorch": (
        "stack all values into one tensor and call .tolist() once, every N steps",
        "keep metrics as tensors: .item(), float(), bool() and print() wait for each value",
    ),
    "": ("fetch all values at once, every N steps",),
}
_WRITE_IN_PLACE: Actions = {
    "tensorflow": (
        "write into a tf.Variable in place (v.scatter_nd_update(indices, x), v[i:j].assign(x)) instead of tf.concat,"
        " tf.pad or tf.tensor_scatter_nd_update, which allocate a new tensor",
        "tf.function(jit_compile=True) fuses copies into neighbouring ops",
    ),
    "jax": ("x.at[i].set(v) or jax.lax.dynamic_update_slice inside the jitted step instead of jnp.concatenate",),
    "pytorch": (
        "write into a preallocated tensor (x[i:j] = v, copy_, index_copy_, a static cache or a ring buffer) instead of"
        " torch.cat, clone() and stack",
        "use in-place ops (add_, mul_) where nothing needs the old value",
        "avoid .contiguous() and .to(dtype) if the next op accepts the tensor as it is",
        "torch.compile fuses copies into neighbouring ops",
    ),
    "": ("allocate memory once and write into it in place",),
}
_COMPILE: Actions = {
    "tensorflow": (
        "wrap the whole step in tf.function; with Keras, model.compile(run_eagerly=False)",
        "fuse its ops: tf.function(jit_compile=True), or model.compile(jit_compile=True)",
    ),
    "jax": ("wrap the whole step, including gradient and update, in jax.jit", "use jax.lax.scan for loops in it"),
    "pytorch": (
        "replace loops over elements, time steps or parameters by one op on stacked tensors (torch.vmap; of a"
        " recurrence torch.nn.GRU; of an update fused=True)",
        "or torch.compile the model, and measure it: on processors it may gain nothing",
    ),
    "": ("compile the step as a whole",),
}


class OfClass(NamedTuple):
    """What is said of a class: the title where one function is at fault, and what to do, by framework."""

    title: str
    actions: Actions


_MAKE_AHEAD = "Make {} cheaper, or prepare its batches ahead of the step"

WORDS_OF_CLASS: Mapping[str, OfClass] = {
    **{kind: OfClass(_MAKE_AHEAD, actions) for kind, actions in _INPUT.items()},
    "input_no_prefetch": OfClass("Wait less in {}, or in another thread", _INPUT["input_no_prefetch"]),
    "checkpoint_stall": OfClass("Save less often, or in the background, in {}", _SAVE),
    "recompilation": OfClass("Stop tracing and compiling in {}", _KEEP_COMPILED),
    "communication_bound": OfClass("Communicate less in {}", _COMMUNICATE),
    "input_transfer": OfClass("Copy less data in with each step, in {}", _COPY_LESS),
    "host_sync": OfClass("Read values all at once, and rarely, in {}", _FETCH_LESS),
    "memory_churn": OfClass("Write in place instead of copying in {}", _WRITE_IN_PLACE),
    "eager_dispatch": OfClass("Do the work of {} in fewer, larger ops", _COMPILE),
    "redundant_compute": OfClass(
        "Run {} less often, or skip it if nothing needs its result", {"": (SKIP, RARELY, ONCE)}
    ),
    "python_overhead": OfClass(
        "Speed up {} or run it less often",
        {"": (*FOR_REPORTS, "replace loops over numbers by NumPy or the framework's ops on whole arrays")},
    ),
}
