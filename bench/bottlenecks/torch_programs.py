"""PyTorch programs with one bottleneck each."""

from __future__ import annotations

import argparse
import json
import pickle
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from bench.bottlenecks.harness import scratch, switches, train_torch, two_ranks

Args = argparse.Namespace


def _mlp(inputs: int, width: int, depth: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for at in range(depth):
        layers += [nn.Linear(inputs if at == 0 else width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


class _Trainer:
    """A model and its optimizer."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.optimizer = model, torch.optim.SGD(model.parameters(), 0.01)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss


def items(args: Args) -> None:
    """host_sync: gradients are inspected element by element."""
    train, x = _Trainer(_mlp(256, 256, 3)), torch.randn(128, 256)

    def step(number: int) -> None:
        train(x)
        if args.slow or number % 1000 == 0:
            for parameter in train.model.parameters():
                for row in parameter.grad[:200]:
                    row.norm().item()

    train_torch(args, step)


def micro_batches(args: Args) -> None:
    """small_batch: gradients of thirty-two parts of the batch are accumulated."""
    train, x = _Trainer(_mlp(128, 128, 4)), torch.randn(128, 128)

    def step(_: int) -> None:
        train.optimizer.zero_grad()
        for part in x.split(4 if args.slow else 128):
            train.model(part).square().mean().backward()
        train.optimizer.step()

    train_torch(args, step)


def cell_by_hand(args: Args) -> None:
    """eager_dispatch: a recurrent cell is written out op by op."""
    cell, x = nn.GRU(32, 32), torch.randn(100, 8, 32)
    weights = list(cell.parameters())

    def by_hand() -> torch.Tensor:
        w_in, w_hid, b_in, b_hid = weights
        state = torch.zeros(8, 32)
        for row in x:
            i, h = row @ w_in.T + b_in, state @ w_hid.T + b_hid
            r, z = torch.sigmoid(i[:, :32] + h[:, :32]), torch.sigmoid(i[:, 32:64] + h[:, 32:64])
            n = torch.tanh(i[:, 64:] + r * h[:, 64:])
            state = (1 - z) * n + z * state
        return state

    optimizer = torch.optim.SGD(cell.parameters(), 0.01)

    def step(_: int) -> None:
        optimizer.zero_grad()
        (by_hand() if args.slow else cell(x)[0][-1]).square().mean().backward()
        optimizer.step()

    train_torch(args, step)


def saves(args: Args) -> None:
    """checkpoint_stall: torch.save after every step."""
    train, x, folder = _Trainer(_mlp(256, 1024, 4)), torch.randn(32, 256), Path(scratch())

    def step(number: int) -> None:
        train(x)
        if args.slow or number % 1000 == 0:
            torch.save({"model": train.model.state_dict(), "opt": train.optimizer.state_dict()}, folder / "last.pt")

    train_torch(args, step)


def python_report(args: Args) -> None:
    """python_overhead: plain Python ranks scores in every step."""
    train, x = _Trainer(_mlp(256, 512, 3)), torch.randn(256, 256)

    def step(number: int) -> None:
        train(x)
        if args.slow or number % 1000 == 0:
            sum(a * b % 7 for a in range(400) for b in range(600))

    train_torch(args, step)


def single_samples(args: Args) -> None:
    """small_batch: the model is updated after each sample."""
    train, x = _Trainer(_mlp(64, 64, 3)), torch.randn(64, 64)

    def step(_: int) -> None:
        for part in x.split(1 if args.slow else 64):
            train(part)

    train_torch(args, step)


def looped_optimizer(args: Args) -> None:
    """eager_dispatch: the optimizer loops over hundreds of small parameters."""
    model = nn.ModuleList([nn.Linear(16, 16) for _ in range(200)])
    kind = {"foreach": False} if args.slow else {"fused": True}
    optimizer, x = torch.optim.AdamW(model.parameters(), 0.001, **kind), torch.randn(64, 16)
    stacked = torch.nn.Linear(16, 16 * 200)

    def step(_: int) -> None:
        optimizer.zero_grad()
        if args.slow:
            sum(layer(x).square().mean() for layer in model).backward()
        else:
            stacked(x).square().mean().backward()
        optimizer.step()

    train_torch(args, step)


def numpy_batches(args: Args) -> None:
    """input_transfer: a large float64 array is converted in every step, only a part of it used."""
    table, train = np.random.default_rng(0).standard_normal((100_000, 128)), _Trainer(_mlp(128, 512, 3))
    ready = torch.tensor(table, dtype=torch.float32)

    def step(number: int) -> None:
        at = number % 100 * 256
        train((torch.tensor(table, dtype=torch.float32) if args.slow else ready)[at : at + 256])

    train_torch(args, step)


def inline_batches(args: Args) -> None:
    """input_python: the loop builds its batch from Python lists."""
    texts = ["".join(random.choices("abcdefgh", k=140)) for _ in range(128)]
    train = _Trainer(_mlp(128, 512, 3))

    def batch() -> torch.Tensor:
        return torch.tensor([[zlib.crc32(t[n : n + 3].encode()) % 512 for n in range(128)] for t in texts]).float()

    ready = batch()
    train_torch(args, lambda _: train(batch() if args.slow else ready) and None)


class _Samples(torch.utils.data.Dataset[torch.Tensor]):
    """Samples made by a function of their number."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, at: int) -> torch.Tensor:
        made: torch.Tensor = self.make(at)
        return made


def _forever(loader: Any) -> Iterator[torch.Tensor]:
    while True:
        yield from loader


def _train_on(args: Args, make: Any, inputs: int, workers: int = 0) -> None:
    if args.slow or workers:
        count = 0 if args.slow else workers
        source = _forever(torch.utils.data.DataLoader(_Samples(make), 64, num_workers=count))
    else:
        ready = [torch.stack([make(at) for at in range(first, first + 64)]) for first in range(0, 512, 64)]
        source = _forever(ready)
    train = _Trainer(_mlp(inputs, 256, 3))
    train_torch(args, lambda _: train(next(source)) and None)


def augment(args: Args) -> None:
    """input_preprocessing: each image is resized and jittered by itself, in the training process."""
    images = torch.randn(64, 3, 48, 48)

    def make(at: int) -> torch.Tensor:
        image = nn.functional.interpolate(images[at % 64][None], size=(32, 32), mode="bicubic")[0]
        return (image * 1.1 + 0.1 * torch.randn_like(image)).clamp(-3, 3).flatten()

    _train_on(args, make, 3072)


def files(args: Args) -> None:
    """input_file_read: each sample lies in a file of its own."""
    folder = Path(scratch())
    for at in range(512):
        np.save(folder / f"{at}.npy", np.random.default_rng(at).standard_normal(2048, dtype=np.float32))
    _train_on(args, lambda at: torch.from_numpy(np.load(folder / f"{at % 512}.npy")), 2048)


def tokenizer(args: Args) -> None:
    """input_python: plain Python hashes each text."""
    texts = ["".join(random.choices("abcdefgh", k=140)) for _ in range(512)]

    def make(at: int) -> torch.Tensor:
        text = texts[at % 512]
        return torch.tensor([zlib.crc32(text[n : n + 3].encode()) % 512 for n in range(128)], dtype=torch.float32)

    _train_on(args, make, 128)


def cast_table(args: Args) -> None:
    """input_transfer: the whole table is copied to another type in every step."""
    table, train = torch.randn(100_000, 128, dtype=torch.float64), _Trainer(_mlp(128, 512, 3))
    ready = table.to(torch.float32)

    def step(number: int) -> None:
        at = number % 100 * 256
        train((table.to(torch.float32) if args.slow else ready)[at : at + 256])

    train_torch(args, step)


def frozen_twin(args: Args) -> None:
    """redundant_compute: a second forward pass for a loss that is not used."""
    train, twin, x = _Trainer(_mlp(256, 512, 3)), _mlp(256, 1024, 4), torch.randn(128, 256)

    def step(_: int) -> None:
        train(x)
        if args.slow:
            with torch.no_grad():
                twin(x).mean()

    train_torch(args, step)


def clones(args: Args) -> None:
    """memory_churn: a large history is cloned and shifted in every step."""
    train, x, state = _Trainer(_mlp(128, 256, 3)), torch.randn(256, 128), [torch.zeros(100_000, 128)]

    def step(number: int) -> None:
        train(x)
        if args.slow:
            state[0] = state[0].clone().roll(256, 0)
            state[0][:256] = x
        else:
            at = number % 100 * 256
            state[0][at : at + 256] = x

    train_torch(args, step)


def shapes(args: Args) -> None:
    """recompilation: every batch has another length, and torch.compile is told that shapes are fixed."""
    torch._dynamo.config.cache_size_limit = 64
    train = _Trainer(_mlp(128, 256, 3))
    train.model = torch.compile(train.model, backend="eager", dynamic=False)

    def step(number: int) -> None:
        train(torch.ones(64 + (number if args.slow else 0), 128))

    train_torch(args, step)


def _uneven(rank: int, args: Args) -> None:
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(_mlp(256, 512, 3))
    train = _Trainer(model)
    rows = (448 if rank else 64) if args.slow else 256
    x = torch.randn(rows, 256)
    train_torch(args, lambda _: train(x) and None)


def uneven(args: Args) -> None:
    """straggler: one rank gets seven times the samples of the other."""
    two_ranks(args, _uneven)


def _gather(rank: int, args: Args) -> None:
    train, x = _Trainer(_mlp(256, 512, 3)), torch.randn(128, 256)
    every = 1 if args.slow else 1000

    def step(number: int) -> None:
        train(x)
        if number % every == 0:
            for parameter in train.model.parameters():
                for _ in range(4):
                    torch.distributed.all_reduce(parameter.data, op=torch.distributed.ReduceOp.MAX)

    train_torch(args, step)


def averages(args: Args) -> None:
    """communication_bound: all parameters are reduced several times in every step."""
    two_ranks(args, _gather)


def pickled_model(args: Args) -> None:
    """checkpoint_stall: model and Adam state are pickled as NumPy arrays after each step."""
    train, x, folder = _Trainer(_mlp(256, 768, 3)), torch.randn(128, 256), Path(scratch())
    train.optimizer = torch.optim.Adam(train.model.parameters(), 0.001)

    def step(number: int) -> None:
        train(x)
        if args.slow or number % 1000 == 0:
            arrays = {name: value.numpy() for name, value in train.model.state_dict().items()}
            moments = [state["exp_avg"].numpy() for state in train.optimizer.state.values()]
            with (folder / "last.pickle").open("wb") as file:
                pickle.dump((arrays, moments), file)

    train_torch(args, step)


def step_log(args: Args) -> None:
    """python_overhead: a long record of each step is formatted as JSON."""
    train, x, log = _Trainer(_mlp(256, 384, 3)), torch.randn(256, 256), Path(scratch()) / "log.jsonl"
    record = {f"layer{at}": [at / (1 + place) for place in range(250)] for at in range(60)}

    def step(number: int) -> None:
        train(x)
        if args.slow or number % 1000 == 0:
            with log.open("a") as file:
                file.write(json.dumps({"step": number, **record}, indent=1))

    train_torch(args, step)


def one_worker(args: Args) -> None:
    """input_preprocessing: a single worker resizes images, more slowly than the step uses them."""
    images = torch.randn(64, 3, 64, 64)

    def make(at: int) -> torch.Tensor:
        return nn.functional.interpolate(images[at % 64][None], size=(40, 40), mode="bicubic")[0].flatten()

    if args.slow:
        source = _forever(torch.utils.data.DataLoader(_Samples(make), 64, num_workers=1, persistent_workers=True))
    else:
        source = _forever([torch.stack([make(at) for at in range(64)])])
    train = _Trainer(_mlp(4800, 128, 3))
    train_torch(args, lambda _: train(next(source)) and None)


def _late(rank: int, args: Args) -> None:
    train = _Trainer(nn.parallel.DistributedDataParallel(_mlp(256, 512, 3)))
    x, texts = torch.randn(256, 256), ["".join(random.choices("abcdefgh", k=200)) for _ in range(200)]

    def step(number: int) -> None:
        train(x)
        if rank == 0 and (args.slow or number % 1000 == 0):
            sorted(zlib.crc32(text[at:].encode()) for text in texts for at in range(0, 200, 2))

    train_torch(args, step)


def late_rank(args: Args) -> None:
    """straggler: one rank makes a report in Python after each step, the other waits for it."""
    two_ranks(args, _late)


def _broadcasts(rank: int, args: Args) -> None:
    model = nn.Sequential(*[nn.Linear(96, 96) for _ in range(40)])
    train, x = _Trainer(model), torch.randn(128, 96)
    flat = torch.zeros(sum(value.numel() for value in model.parameters()))

    def step(_: int) -> None:
        train(x)
        if args.slow:
            for parameter in model.parameters():
                torch.distributed.broadcast(parameter.data, 0)
        else:
            torch.cat([parameter.data.flatten() for parameter in model.parameters()], out=flat)
            torch.distributed.broadcast(flat, 0)

    train_torch(args, step)


def broadcasts(args: Args) -> None:
    """communication_bound: every parameter is broadcast by itself after each step."""
    two_ranks(args, _broadcasts)


if __name__ == "__main__":
    _args = switches()
    globals()[_args.program](_args)
