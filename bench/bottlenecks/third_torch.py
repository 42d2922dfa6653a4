"""Programs of PyTorch by a third author, written without knowledge of the rules of the advice or of its results."""

from __future__ import annotations

import io
import itertools
import queue
import threading
import time
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from bench.bottlenecks.loops import train_on
from bench.bottlenecks.series import Run, program

torch.set_num_threads(1)


class PetPhotos(Dataset[tuple[torch.Tensor, int]]):
    """Photos of pets as JPEG files in memory; the fixed variant decodes and shrinks each of them once."""

    def __init__(self, slow: bool, count: int = 128) -> None:
        rng = np.random.default_rng(0)
        self.files = [self.encode(rng.integers(0, 256, (7, 7, 3), dtype=np.uint8)) for _ in range(count)]
        self.shrunk = None if slow else [self.decode(index) for index in range(count)]

    @staticmethod
    def encode(pixels: np.ndarray) -> bytes:
        """A JPEG file of 280 by 280 pixels."""
        file = io.BytesIO()
        Image.fromarray(pixels).resize((280, 280)).save(file, "JPEG", quality=90)
        return file.getvalue()

    def decode(self, index: int) -> np.ndarray:
        """The photo as 72 by 72 bytes per colour."""
        photo = Image.open(io.BytesIO(self.files[index])).convert("RGB")
        return np.asarray(photo.resize((72, 72), Image.Resampling.LANCZOS))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        photo = self.shrunk[index] if self.shrunk else self.decode(index)
        top, left, mirrored = torch.randint(0, 8, (3,)).tolist()
        crop = photo[top : top + 64, left : left + 64, :: -1 if mirrored % 2 else 1]
        return torch.from_numpy(crop.transpose(2, 0, 1) / np.float32(255)), index % 12


@program(
    "input_preprocessing",
    culprits=("PetPhotos.__getitem__", "PetPhotos.decode", "DataLoader"),
    also=("input_no_prefetch", "input_python"),
    fix="decode and shrink each photo once, and crop what was kept",
    ablate="input",
)
def torch_pet_photos(run: Run) -> Iterator[None]:
    """A classifier of photos that decodes large JPEG files in the training process, in each epoch again."""
    loader = DataLoader(PetPhotos(run.slow), 16, shuffle=True, drop_last=True)
    model = nn.Sequential(
        *(nn.Conv2d(3, 32, 3, stride=2), nn.ReLU(), nn.Conv2d(32, 48, 3, stride=2), nn.ReLU()),
        *(nn.Conv2d(48, 64, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12)),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    while True:
        for photos, breeds in loader:
            train_on(F.cross_entropy(model(photos), breeds), optimizer)
            yield


class RemoteClips(Dataset[tuple[torch.Tensor, int]]):
    """Clips of sound in an object store that answers each request after some milliseconds."""

    def __init__(self, count: int = 512, latency_s: float = 0.004) -> None:
        sound = np.random.default_rng(0).integers(-9000, 9000, (count, 4000), dtype=np.int16)
        self.objects, self.latency_s = [clip.tobytes() for clip in sound], latency_s

    def fetch(self, index: int) -> bytes:
        """The bytes of an object, as a client of the store gets them."""
        time.sleep(self.latency_s)  # stands for the network
        return self.objects[index]

    def __len__(self) -> int:
        return len(self.objects)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        clip = np.frombuffer(self.fetch(index), np.int16).astype(np.float32) / 9000
        return torch.from_numpy(clip)[None], index % 20


@program(
    "input_file_read",
    culprits=("RemoteClips.fetch", "RemoteClips.__getitem__", "DataLoader"),
    also=("input_no_prefetch", "input_preprocessing"),
    fix="four workers in place of one",
    ablate="input",
    lead=12,
    python=True,
)
def torch_remote_clips(run: Run) -> Iterator[None]:
    """A classifier of sound whose only worker fetches one clip after another from a store far away."""
    workers = 1 if run.slow else 4
    loader = DataLoader(RemoteClips(), 12, shuffle=True, num_workers=workers, persistent_workers=True, drop_last=True)
    model = nn.Sequential(
        *(nn.Conv1d(1, 48, 25, stride=4), nn.ReLU(), nn.Conv1d(48, 64, 9, stride=2), nn.ReLU()),
        *(nn.Conv1d(64, 64, 5), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(64, 20)),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    while True:
        for clips, words in loader:
            train_on(F.cross_entropy(model(clips), words), optimizer)
            yield


class SmallTransformer(nn.Module):
    """Token embeddings, some layers of attention, and logits for each token."""

    def __init__(self, vocabulary: int, width: int, layers: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.tokens, self.out = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.layers = nn.TransformerEncoder(layer, layers)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Logits of shape (texts, tokens, vocabulary)."""
        return self.out(self.layers(self.tokens(text)))


@program(
    "small_batch",
    culprits=("torch_small_card", "SmallTransformer.forward", "SmallTransformer"),
    also=("eager_dispatch", "python_overhead"),
    fix="one batch of 32 texts in place of 16 micro-batches of two",
    python=True,
)
def torch_small_card(run: Run) -> Iterator[None]:
    """A language model that accumulates gradients over micro-batches that once fitted a much smaller card."""
    model = SmallTransformer(200, 64, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    texts = torch.randint(0, 200, (8, 32, 25))
    parts = 16 if run.slow else 1
    for number in itertools.count():
        for text in texts[number % 8].chunk(parts):
            logits = model(text[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
            (loss / parts).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield


class EntityScores:
    """How often each kind of entity was taken for which; the slow variant counts token by token."""

    def __init__(self, slow: bool, kinds: int) -> None:
        self.matrix = torch.zeros(kinds, kinds, dtype=torch.int64)
        self.update = self.count_tokens if slow else self.count_all

    def count_tokens(self, truths: torch.Tensor, guesses: torch.Tensor) -> None:
        """Adds a batch."""
        for truth, guess in zip(truths.flatten(), guesses.flatten(), strict=True):
            if truth.item() != 0:
                self.matrix[truth.item(), guess.item()] += 1

    def count_all(self, truths: torch.Tensor, guesses: torch.Tensor) -> None:
        """Adds a batch at once."""
        kinds = len(self.matrix)
        counts = torch.bincount((truths * kinds + guesses).flatten(), minlength=kinds**2).view(kinds, kinds)
        self.matrix[1:] += counts[1:]


@program(
    "host_sync",
    culprits=("EntityScores.count_tokens", "aten::item", "aten::_local_scalar_dense"),
    also=("python_overhead", "eager_dispatch"),
    fix="count a batch with one torch.bincount",
    ablate="EntityScores.count_tokens",
)
def torch_entity_scores(run: Run) -> Iterator[None]:
    """A tagger of entities that keeps a confusion matrix by `.item()` of each token."""
    model = SmallTransformer(60, 64, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    scores = EntityScores(run.slow, 60)
    texts = torch.randint(0, 60, (8, 32, 64))
    for number in itertools.count():
        text = texts[number % 8]
        entities = text * (text % 3 == 0)
        logits = model(text)
        train_on(F.cross_entropy(logits.flatten(0, 1), entities.flatten()), optimizer)
        scores.update(entities, logits.detach().argmax(dim=2))
        yield


class OwnAdam:
    """Adam as in its paper, for one parameter after another, with an average of the weights."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = list(model.parameters())
        self.first, self.second, self.average = (
            [torch.zeros_like(parameter) for parameter in self.parameters] for _ in range(3)
        )
        self.steps = 0

    @torch.no_grad()
    def step(self) -> None:
        """Updates the parameters and their average from the gradients."""
        self.steps += 1
        for index, parameter in enumerate(self.parameters):
            gradient = parameter.grad
            assert gradient is not None
            self.first[index] = 0.9 * self.first[index] + (1 - 0.9) * gradient
            self.second[index] = 0.999 * self.second[index] + (1 - 0.999) * gradient**2
            first = self.first[index] / (1 - 0.9**self.steps)
            second = self.second[index] / (1 - 0.999**self.steps)
            parameter -= 1e-3 * first / (torch.sqrt(second) + 1e-8)
            self.average[index] = 0.99 * self.average[index] + (1 - 0.99) * parameter

    def zero_grad(self, set_to_none: bool) -> None:
        """Forgets the gradients."""
        for parameter in self.parameters:
            parameter.grad = None if set_to_none else torch.zeros_like(parameter)


class FusedAdam(torch.optim.Adam):
    """The library's, with an average of the weights in one call."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model.parameters(), lr=1e-3, fused=True)
        self.own = list(model.parameters())
        self.average = [torch.zeros_like(parameter) for parameter in self.own]

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Updates the parameters and their average from the gradients."""
        super().step()
        torch._foreach_lerp_(self.average, self.own, 0.01)


@program(
    "eager_dispatch",
    culprits=("OwnAdam.step", "OwnAdam"),
    also=("python_overhead", "memory_churn"),
    fix="torch.optim.Adam(fused=True) and torch._foreach_lerp_",
    ablate="OwnAdam.step",
)
def torch_own_adam(run: Run) -> Iterator[None]:
    """A deep network of narrow layers with an optimizer that somebody wrote from its formulas."""
    layers = [nn.Sequential(nn.Linear(128, 128), nn.LayerNorm(128), nn.SiLU()) for _ in range(40)]
    model = nn.Sequential(*layers, nn.Linear(128, 10))
    optimizer = OwnAdam(model) if run.slow else FusedAdam(model)
    rows, labels = torch.randn(8, 64, 128), torch.randint(0, 10, (8, 64))
    for number in itertools.count():
        train_on(F.cross_entropy(model(rows[number % 8]), labels[number % 8]), optimizer)
        yield


class TextFeeder:
    """A thread that keeps a few batches of tokens ready."""

    def __init__(self, slow: bool) -> None:
        rng = np.random.default_rng(0)
        words = ["".join(map(chr, rng.integers(97, 123, rng.integers(2, 9)))) for _ in range(400)]
        self.pieces = {piece: index for index, piece in enumerate(sorted({w[:n] for w in words for n in (1, 2, 3)}), 1)}
        self.texts = [" ".join(rng.choice(words, 40)) for _ in range(192)]
        self.tokens = None if slow else [self.tokenize(text) for text in self.texts]
        self.ready: queue.Queue[torch.Tensor] = queue.Queue(maxsize=3)
        threading.Thread(target=self.fill, name="feeder", daemon=True).start()

    def tokenize(self, text: str, length: int = 64) -> list[int]:
        """The numbers of the longest known pieces of the text, from left to right."""
        found: list[int] = []
        at = 0
        while at < len(text):
            size = next((size for size in (8, 7, 6, 5, 4, 3, 2, 1) if text[at : at + size] in self.pieces), 1)
            found.append(self.pieces.get(text[at : at + size], 0))
            at += size
        return (found + [0] * length)[:length]

    def fill(self) -> None:
        """Makes batches for ever; waits while enough of them are ready."""
        for number in itertools.count():
            chosen = [(24 * number + index) % len(self.texts) for index in range(24)]
            rows = [self.tokens[index] if self.tokens else self.tokenize(self.texts[index]) for index in chosen]
            self.ready.put(torch.tensor(rows))


@program(
    "input_python",
    culprits=("TextFeeder.tokenize", "TextFeeder.fill"),
    also=("python_overhead", "input_preprocessing"),
    fix="tokenize the texts once, before training",
    ablate="TextFeeder.tokenize",
    lead=8,
)
def torch_feeding_thread(run: Run) -> Iterator[None]:
    """A language model beside a thread that tokenizes in Python, and holds the interpreter's lock while it does."""
    feeder = TextFeeder(run.slow)
    model = SmallTransformer(len(feeder.pieces) + 1, 64, 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    while True:
        text = feeder.ready.get()[:, ::2]
        logits = model(text[:, :-1])
        train_on(F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()), optimizer)
        yield


class SmallUNet(nn.Module):
    """Halves a picture twice and doubles it again, with bridges."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        sizes = ((1, width), (width, 2 * width), (2 * width, 2 * width), (4 * width, width), (2 * width, width))
        self.parts = nn.ModuleList(
            nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU())
            for before, after in sizes
        )
        self.out = nn.Conv2d(width, 4, 1)

    def forward(self, scans: torch.Tensor) -> torch.Tensor:
        """Logits per pixel, for four tissues."""
        high = self.parts[0](scans)
        middle = self.parts[1](F.max_pool2d(high, 2))
        low = F.interpolate(self.parts[2](F.max_pool2d(middle, 2)), scale_factor=2)
        middle = F.interpolate(self.parts[3](torch.cat([low, middle], dim=1)), scale_factor=2)
        return self.out(self.parts[4](torch.cat([middle, high], dim=1)))


@program("none", culprits=(), fix="nothing to fix: the other variant has another seed", lead=8)
def torch_healthy_scans(run: Run) -> Iterator[None]:
    """A U-Net for scans that a worker hands over well ahead; the loss is read every 50 steps."""
    torch.manual_seed(int(run.slow))
    scans = TensorDataset(torch.randn(256, 1, 48, 48), torch.randint(0, 4, (256, 48, 48)))
    loader = DataLoader(scans, 12, shuffle=True, num_workers=1, persistent_workers=True, drop_last=True)
    model, losses = SmallUNet(), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    while True:
        for number, (scan, tissues) in enumerate(loader):
            loss = F.cross_entropy(model(scan), tissues)
            train_on(loss, optimizer)
            if number % 50 == 49:
                losses.append(loss.item())
            yield
