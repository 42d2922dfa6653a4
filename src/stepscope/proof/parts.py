"""Which functions of the frameworks do what a user may name in a word, such as `input` or `checkpoint`."""

from __future__ import annotations


def _each(owner: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{owner}.{name}" for name in names)


KERAS_EPOCHS = (
    "keras.src.backend.tensorflow.trainer.TFEpochIterator.__next__",
    "keras.src.backend.jax.trainer.JAXEpochIterator.__next__",
)
"""They hand an iterator to each step of `fit`, which takes its batch from it."""

PARTS: dict[str, tuple[str, ...]] = {
    "input": (
        "torch.utils.data.dataloader._BaseDataLoaderIter.__next__",
        "tensorflow.python.data.ops.iterator_ops.OwnedIterator.__next__",
        *_each("tensorflow.python.data.ops.dataset_ops", "NumpyIterator.__next__", "_NumpyIterator.__next__"),
        "grain._src.python.data_loader.DataLoaderIterator.__next__",
        *KERAS_EPOCHS,
    ),
    "logging": (
        *_each("logging.Logger", "debug", "info", "warning", "error", "critical", "log", "handle"),
        "builtins.print",
        *_each(
            "torch.utils.tensorboard.writer.SummaryWriter",
            *("add_scalar", "add_scalars", "add_histogram", "add_image", "flush"),
        ),
        *_each("tensorboardX.writer.SummaryWriter", "add_scalar", "add_histogram"),
        "wandb.sdk.wandb_run.Run.log",
        *_each("mlflow.tracking.fluent", "log_metric", "log_metrics"),
    ),
    "checkpoint": (
        "torch.serialization.save",
        *_each("tensorflow.python.checkpoint.checkpoint", "CheckpointV1.save", "Checkpoint.save", "Checkpoint.write"),
        "tensorflow.python.checkpoint.checkpoint_management.CheckpointManager.save",
        *_each("keras.src.models.model.Model", "save", "save_weights"),
        "orbax.checkpoint._src.checkpointers.checkpointer.Checkpointer.save",
        "orbax.checkpoint._src.checkpointers.async_checkpointer.AsyncCheckpointer.save",
        *_each("numpy", "save", "savez", "savez_compressed"),
        "pickle.dump",
        *_each("safetensors", "torch.save_file", "numpy.save_file"),
    ),
    "sync": (
        *_each("torch", "Tensor.item", "Tensor.tolist", "Tensor.cpu", "Tensor.__float__", "cuda.synchronize"),
        "jax.block_until_ready",
        *_each("jax._src.array.ArrayImpl", "block_until_ready", "__float__", "item", "__array__"),
    ),
    "transfer": ("torch.Tensor.to", "torch.Tensor.cuda", "jax.device_put"),
    "collective": (
        *_each("torch.distributed", "all_reduce", "all_gather", "all_gather_into_tensor"),
        *_each("torch.distributed", "reduce_scatter_tensor", "broadcast", "barrier"),
    ),
}
"""The functions of each part, by where they are defined: a name that is not imported is left out."""
