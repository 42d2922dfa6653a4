# modes: run watch
# timeout: 300
"""A training by Lightning, with a callback that notes what it is called with."""

import logging
import typing
import warnings

import lightning
import torch

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, at):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Note(lightning.Callback):
    calls: typing.ClassVar = []

    def on_train_batch_end(self, trainer, module, outputs, batch, at):
        self.calls.append((at, sorted(outputs), trainer.global_step))


torch.manual_seed(0)
model = Model()
trainer = lightning.Trainer(
    max_epochs=2,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    callbacks=[Note()],
    enable_model_summary=False,
    accelerator="cpu",
)
trainer.fit(model, torch.utils.data.DataLoader([torch.ones(2)] * 12, batch_size=1))
print(len(Note.calls), Note.calls[:2], round(float(model.layer.weight.sum()), 4))
print([type(each).__name__ for each in trainer.callbacks], trainer.global_step)
