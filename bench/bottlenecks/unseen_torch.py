"""Programs of PyTorch, written without knowledge of the rules of the advice."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from bench.bottlenecks.harness import scratch
from bench.bottlenecks.unseen import Run, program

torch.set_num_threads(1)


def _repeat(loader: Any) -> Iterator[Any]:
    while True:
        yield from loader


def _mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for rows, columns in itertools.pairwise(sizes):
        layers += [nn.Linear(rows, columns), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _update(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


class Molecules(Dataset[tuple[torch.Tensor, float]]):
    """Molecules as strings, from which each access makes a fingerprint in Python."""

    def __init__(self, slow: bool, count: int = 1024) -> None:
        rng = np.random.default_rng(0)
        self.strings = ["".join(rng.choice(list("CNOS=()1"), 60)) for _ in range(count)]
        self.ready = None if slow else [self.make_fingerprint(string) for string in self.strings]

    def __len__(self) -> int:
        return len(self.strings)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, float]:
        bits = self.make_fingerprint(self.strings[index]) if self.ready is None else self.ready[index]
        return bits, float(index % 2)

    def make_fingerprint(self, string: str) -> torch.Tensor:
        """One bit for each short piece of the string."""
        bits = [0.0] * 512
        for size in range(1, 9):
            for first in range(len(string) - size):
                code = 7
                for letter in string[first : first + size]:
                    code = (code * 33 ^ ord(letter)) & 0xFFFF
                bits[code % 512] = 1.0
        return torch.tensor(bits)


@program(
    "input_python",
    culprits=("Molecules.__getitem__", "Molecules.make_fingerprint", "DataLoader"),
    also=("input_preprocessing",),
    fix="make the fingerprints once, before training",
    lead=8,
)
def torch_fingerprints(run: Run) -> Iterator[None]:
    """Two worker processes that are too slow, since the samples are made in pure Python."""
    loader = DataLoader(Molecules(run.slow), 32, shuffle=True, num_workers=2, persistent_workers=True)
    model = _mlp(512, 512, 1)
    optimizer = torch.optim.Adam(model.parameters())
    for bits, labels in _repeat(loader):
        _update(optimizer, F.binary_cross_entropy_with_logits(model(bits)[:, 0], labels.float()))
        yield


class SavedScans(Dataset[tuple[torch.Tensor, int]]):
    """One file for each sample."""

    def __init__(self, count: int = 96) -> None:
        self.folder = Path(scratch())
        for number in range(count):
            torch.save({"scan": torch.randn(256, 128), "label": number % 4}, self.folder / f"{number}.pt")
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        sample = torch.load(self.folder / f"{index}.pt")
        return sample["scan"], sample["label"]


@program(
    "input_file_read",
    culprits=("SavedScans.__getitem__", "DataLoader"),
    also=("input_no_prefetch", "input_python"),
    fix="keep the samples in memory",
)
def torch_saved_scans(run: Run) -> Iterator[None]:
    """`torch.load` of a small file for each sample, in the training process."""
    saved = SavedScans()
    held = [saved[index] for index in range(len(saved))]
    loader = DataLoader(saved if run.slow else held, batch_size=24, shuffle=True)  # type: ignore[arg-type]
    model = nn.Sequential(nn.Conv1d(256, 32, 5, stride=4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4))
    model(torch.zeros(1, 256, 128))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for scans, labels in _repeat(loader):
        _update(optimizer, F.cross_entropy(model(scans), labels))
        yield


class StoredPictures(Dataset[torch.Tensor]):
    """Pictures in an object store, which takes two milliseconds to answer."""

    def __init__(self) -> None:
        self.pictures = torch.rand(512, 3, 64, 64)

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.002)
        return self.pictures[index].flip(dims=[2]) if index % 2 else self.pictures[index]


@program(
    "input_no_prefetch",
    culprits=("StoredPictures.__getitem__", "DataLoader"),
    also=("input_file_read",),
    fix="num_workers=4, persistent_workers=True",
    lead=12,
)
def torch_no_workers(run: Run) -> Iterator[None]:
    """Pictures from a store that answers slowly, through a DataLoader without workers."""
    workers: dict[str, Any] = {} if run.slow else {"num_workers": 4, "persistent_workers": True}
    loader = DataLoader(StoredPictures(), batch_size=16, shuffle=True, **workers)
    model = nn.Sequential(nn.Conv2d(3, 32, 3, stride=2), nn.ReLU(), nn.Conv2d(32, 32, 3, stride=2), nn.Flatten())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for pictures in _repeat(loader):
        _update(optimizer, model(pictures).square().mean())
        yield


class HandLstm(nn.Module):
    """A recurrent network as in a text book: one position after another, one gate after another."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.gates = nn.ModuleList(nn.Linear(inputs + width, width) for _ in range(4))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The state after the last position."""
        state = cell = tokens.new_zeros(len(tokens), self.width)
        for position in range(tokens.shape[1]):
            both = torch.cat([tokens[:, position], state], dim=1)
            keep, take, give = (torch.sigmoid(gate(both)) for gate in list(self.gates)[:3])
            cell = keep * cell + take * torch.tanh(self.gates[3](both))
            state = give * torch.tanh(cell)
        return state


class LibraryLstm(nn.Module):
    """The same with the library's layer."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, width, batch_first=True)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The state after the last position."""
        return self.lstm(tokens)[0][:, -1]


@program(
    "eager_dispatch",
    culprits=("HandLstm.forward", "HandLstm"),
    also=("small_batch", "python_overhead"),
    fix="nn.LSTM in place of a loop over positions and gates",
)
def torch_hand_lstm(run: Run) -> Iterator[None]:
    """A hand-written LSTM: hundreds of small ops in each step."""
    model = (HandLstm if run.slow else LibraryLstm)(16, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    batches = torch.randn(8, 64, 40, 16)
    for number in range(10**6):
        _update(optimizer, model(batches[number % 8]).square().mean())
        yield


def _count_outliers(losses: torch.Tensor) -> int:
    outliers = 0
    for loss in losses:
        if loss.item() > 2.0:
            outliers += 1
    return outliers


@program(
    "host_sync",
    culprits=("_count_outliers", "aten::item", "_local_scalar_dense"),
    also=("python_overhead", "eager_dispatch"),
    fix="(losses > 2).sum() at once",
)
def torch_outliers(run: Run) -> Iterator[None]:
    """Each sample's loss is fetched with `item()` to count the outliers."""
    model = _mlp(16, 96, 16)
    optimizer = torch.optim.Adam(model.parameters())
    features, outliers = torch.randn(4096, 16), 0
    for _ in range(10**6):
        losses = (model(features) - features).square().mean(dim=1)
        outliers += _count_outliers(losses) if run.slow else int((losses > 2.0).sum())
        _update(optimizer, losses.mean())
        yield


def _edit_distance(said: list[int], meant: list[int]) -> int:
    row = list(range(len(meant) + 1))
    for place, token in enumerate(said, 1):
        last, row[0] = row[0], place
        for column, wanted in enumerate(meant, 1):
            last, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, last + (token != wanted))
    return row[-1]


def _error_rate(logits: torch.Tensor, targets: torch.Tensor) -> float:
    pairs = zip(logits.argmax(dim=2).tolist(), targets.tolist(), strict=True)
    return sum(_edit_distance(said, meant) / len(meant) for said, meant in pairs)


@program(
    "python_overhead",
    culprits=("_error_rate", "_edit_distance"),
    fix="compute the error rate every 200 steps",
)
def torch_word_errors(run: Run) -> Iterator[None]:
    """The edit distance of each prediction is computed in Python, for a progress line."""
    model = nn.Sequential(nn.Conv1d(32, 128, 5, padding=2), nn.ReLU(), nn.Conv1d(128, 40, 5, padding=2))
    optimizer = torch.optim.Adam(model.parameters())
    sounds, targets, rate = torch.randn(16, 32, 48), torch.randint(0, 40, (16, 48)), 0.0
    for number in range(10**6):
        logits = model(sounds).transpose(1, 2)
        _update(optimizer, F.cross_entropy(logits.flatten(0, 1), targets.flatten()))
        if run.slow or number % 200 == 199:
            rate = 0.9 * rate + 0.1 * _error_rate(logits, targets)
        yield


def _save_all(place: Path, model: nn.Module, optimizer: torch.optim.Optimizer, number: int) -> None:
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": number}
    torch.save(state, place.with_suffix(".tmp"))
    place.with_suffix(".tmp").replace(place)


@program(
    "checkpoint_stall",
    culprits=("_save_all",),
    fix="save every 1000 steps",
)
def torch_save_often(run: Run) -> Iterator[None]:
    """Model and optimizer are saved after every second step."""
    model, place = _mlp(256, 640, 640, 10), Path(scratch()) / "last.pt"
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(TensorDataset(torch.randn(4096, 256), torch.randint(0, 10, (4096,))), batch_size=64)
    for number, (inputs, labels) in enumerate(_repeat(loader)):
        _update(optimizer, F.cross_entropy(model(inputs), labels))
        if number % (2 if run.slow else 1000) == 1:
            _save_all(place, model, optimizer, number)
        yield


class Encoder(nn.Module):
    """Four layers of a transformer; `slow` computes each of them again for the backward pass."""

    def __init__(self, slow: bool) -> None:
        super().__init__()
        self.slow = slow
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True) for _ in range(4)
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The tokens after all layers."""
        for layer in self.layers:
            tokens = checkpoint(layer, tokens, use_reentrant=False) if self.slow else layer(tokens)
        return tokens


@program(
    "redundant_compute",
    culprits=("Encoder.forward", "checkpoint", "TransformerEncoderLayer", "aten::addmm", "aten::mm"),
    fix="no activation checkpointing: the memory suffices",
)
def torch_recomputation(run: Run) -> Iterator[None]:
    """Activation checkpointing of a model that would fit a hundred times."""
    model = Encoder(run.slow)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    tokens = torch.randn(16, 48, 64)
    for _ in range(10**6):
        _update(optimizer, model(tokens).square().mean())
        yield


class Counting(IterableDataset[torch.Tensor]):
    """An endless stream of batches."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        generator = torch.Generator().manual_seed(dist.get_rank() if dist.is_initialized() else 0)
        while True:
            yield torch.randn(256, 128, generator=generator)


def _evaluate(model: nn.Module, held_out: torch.Tensor) -> float:
    with torch.no_grad():
        return sum(float(model(batch).square().mean()) for batch in held_out)


@program(
    "straggler",
    culprits=("_evaluate", "aten::addmm", "aten::linear"),
    also=("redundant_compute",),
    fix="evaluate every 500 steps",
    ranks=2,
)
def torch_evaluating_rank(run: Run) -> Iterator[None]:
    """The first of two ranks evaluates the model after each step, and the other one waits for it."""
    inner = _mlp(128, 512, 512, 128)
    model = DistributedDataParallel(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    held_out = torch.randn(16, 128, 128)
    for number, batch in enumerate(DataLoader(Counting(), batch_size=None)):
        _update(optimizer, model(batch).square().mean())
        if dist.get_rank() == 0 and (run.slow or number % 500 == 499):
            _evaluate(inner, held_out)
        yield


@program(
    "communication_bound",
    culprits=("gloo:all_reduce", "all_reduce", "allreduce", "DistributedDataParallel"),
    fix="no_sync() for all micro-batches but the last",
    ranks=2,
)
def torch_reduce_each_micro_batch(run: Run) -> Iterator[None]:
    """Gradients of a wide model are reduced after each of six micro-batches."""
    model = DistributedDataParallel(_mlp(256, 512, 512, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    micro_batches = torch.randn(6, 32, 256)
    for _ in range(10**6):
        optimizer.zero_grad()
        for number, batch in enumerate(micro_batches):
            with nullcontext() if run.slow or number == 5 else model.no_sync():
                (model(batch).square().mean() / 6).backward()
        optimizer.step()
        yield


@program("none", culprits=(), fix="nothing to fix: the other variant has another seed")
def torch_healthy_pictures(run: Run) -> Iterator[None]:
    """A small convolutional network with a worker that keeps up."""
    torch.manual_seed(int(run.slow))
    data = TensorDataset(torch.randn(1024, 3, 32, 32), torch.randint(0, 10, (1024,)))
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=1, persistent_workers=True)
    model = nn.Sequential(
        *(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 10)),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    for pictures, labels in _repeat(loader):
        _update(optimizer, F.cross_entropy(model(pictures), labels))
        yield


@program("none", culprits=(), fix="nothing to fix: the other variant has another seed", ranks=2)
def torch_healthy_ranks(run: Run) -> Iterator[None]:
    """Two ranks of equal work, whose gradients are small."""
    torch.manual_seed(int(run.slow))
    convolutions = nn.Sequential(nn.Conv2d(3, 24, 3), nn.ReLU(), nn.Conv2d(24, 24, 3), nn.ReLU())
    head = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(96, 5))
    model = DistributedDataParallel(nn.Sequential(convolutions, head))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    pictures, labels = torch.randn(4, 24, 3, 40, 40), torch.randint(0, 5, (4, 24))
    for number in range(10**6):
        _update(optimizer, F.cross_entropy(model(pictures[number % 4]), labels[number % 4]))
        yield
