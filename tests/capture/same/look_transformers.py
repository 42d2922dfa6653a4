# timeout: 300
"""A training by the Trainer of transformers on a tiny model."""

import torch
import transformers

transformers.set_seed(0)
transformers.logging.set_verbosity_error()
config = transformers.BertConfig(
    vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, num_labels=2
)
model = transformers.BertForSequenceClassification(config)
data = [{"input_ids": torch.arange(6) % 20, "labels": torch.tensor(n % 2)} for n in range(16)]
calls = []


class Note(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **named):
        calls.append((state.global_step, sorted(named)))


options = transformers.TrainingArguments(
    "out",
    max_steps=12,
    per_device_train_batch_size=2,
    report_to=[],
    save_strategy="no",
    logging_strategy="no",
    disable_tqdm=True,
    use_cpu=True,
)
trainer = transformers.Trainer(model, options, train_dataset=data, callbacks=[Note()])
result = trainer.train()
print(len(calls), calls[:1], round(result.training_loss, 4))
print([type(each).__name__ for each in trainer.callback_handler.callbacks])
