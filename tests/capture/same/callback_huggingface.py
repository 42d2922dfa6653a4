# modes: callback
# timeout: 300
"""The Trainer of transformers trains: its log, its state and what the program's own callback is called with."""

import os

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
        calls.append((state.global_step, sorted(named), control.should_log))


options = transformers.TrainingArguments(
    "out",
    max_steps=12,
    per_device_train_batch_size=2,
    gradient_accumulation_steps=2,
    report_to=[],
    save_strategy="no",
    logging_steps=4,
    disable_tqdm=True,
    use_cpu=True,
)
trainer = transformers.Trainer(model, options, train_dataset=data, eval_dataset=data[:4], callbacks=[Note()])
trainer.remove_callback(transformers.PrinterCallback)  # which prints how long it took
if logdir := os.environ.pop("STEPSCOPE_SAME_LOGDIR", ""):
    from stepscope.huggingface import ProfilerCallback

    trainer.add_callback(ProfilerCallback(logdir))
trainer.train()
print(len(calls), calls[0], calls[-1])
print([(each["step"], round(each["loss"], 5)) for each in trainer.state.log_history if "loss" in each])
print(round(trainer.evaluate()["eval_loss"], 5), trainer.state.global_step)
