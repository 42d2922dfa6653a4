# modes: callback
# timeout: 300
"""Lightning trains and validates: losses, state of the callbacks in a checkpoint, and hooks in their order."""

import logging
import os
import typing
import warnings

import lightning
import torch

added = []
if logdir := os.environ.pop("STEPSCOPE_SAME_LOGDIR", ""):
    from stepscope.lightning import ProfilerCallback

    added = [ProfilerCallback(logdir)]

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, at):
        return self.layer(batch).pow(2).sum()

    def validation_step(self, batch, at):
        self.log("loss", self.layer(batch).sum())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.01)


class Note(lightning.Callback):
    calls: typing.ClassVar = []

    def on_train_batch_end(self, trainer, module, outputs, batch, at):
        self.calls.append((at, round(float(outputs["loss"]), 5)))

    def on_validation_end(self, trainer, module):
        self.calls.append(("validated", round(float(trainer.callback_metrics["loss"]), 5)))

    def state_dict(self):
        return {"calls": len(self.calls)}


torch.manual_seed(0)
model = Model()
trainer = lightning.Trainer(
    max_epochs=2,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    callbacks=[Note(), *added],
    enable_model_summary=False,
    accelerator="cpu",
    gradient_clip_val=0.5,
    accumulate_grad_batches=2,
)
batches = torch.utils.data.DataLoader([torch.ones(2) * at for at in range(12)], batch_size=1)
trainer.fit(model, batches, batches)
print(Note.calls, trainer.global_step)
trainer.save_checkpoint("model.ckpt")
saved = torch.load("model.ckpt", weights_only=False)
print(sorted(saved), {name: state for name, state in saved["callbacks"].items() if "Profiler" not in name})
