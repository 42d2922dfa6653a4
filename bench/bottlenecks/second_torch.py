"""Later programs of PyTorch, written without knowledge of the rules of the advice or of its results."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from bench.bottlenecks.loops import train_on
from bench.bottlenecks.series import Run, program

torch.set_num_threads(1)


class TwoViews(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Two random crops of each picture; the slow variant keeps the pictures larger than anybody needs them."""

    def __init__(self, slow: bool, count: int = 256) -> None:
        large = torch.rand(count, 3, 40, 40).repeat_interleave(3, dim=2).repeat_interleave(3, dim=3)
        self.pictures = large if slow else torch.stack([_shrink(picture) for picture in large])
        self.slow = slow

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.crop(index), self.crop(index)

    def crop(self, index: int) -> torch.Tensor:
        """A random view of 32 by 32 pixels, mirrored in half of the cases."""
        picture = self.pictures[index]
        small = _shrink(picture) if self.slow else picture
        top, left, mirrored = torch.randint(0, 8, (3,)).tolist()
        view = small[:, top : top + 32, left : left + 32]
        return view.flip(2) if mirrored % 2 else view


def _shrink(picture: torch.Tensor) -> torch.Tensor:
    blurred = F.conv2d(picture[:, None], torch.full((1, 1, 5, 5), 0.04), padding=2)
    return F.interpolate(blurred, (40, 40), mode="bicubic", antialias=True)[:, 0]


@program(
    "input_preprocessing",
    culprits=("TwoViews.__getitem__", "TwoViews.crop", "_shrink", "DataLoader", "upsample", "interpolate"),
    also=("input_no_prefetch",),
    fix="store the pictures at the size that is cropped",
    lead=10,
)
def torch_two_views(run: Run) -> Iterator[None]:
    """Contrastive learning whose one worker blurs and shrinks each picture twice, in each epoch again."""
    loader = DataLoader(TwoViews(run.slow), 24, shuffle=True, num_workers=1, persistent_workers=True, drop_last=True)
    encoder = nn.Sequential(
        *(nn.Conv2d(3, 24, 3, stride=2), nn.ReLU(), nn.Conv2d(24, 32, 3), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 64)),
    )
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9)
    while True:
        for left, right in loader:
            codes = F.normalize(encoder(torch.cat([left, right])), dim=1)
            likeness = (codes @ codes.T / 0.2).fill_diagonal_(-1e9)
            partners = torch.arange(len(codes)).roll(len(left))
            train_on(F.cross_entropy(likeness, partners), optimizer)
            yield


class LoopedAttention(nn.Module):
    """Attention as in a tutorial: one head after another, each with its own three matrices."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(
            nn.ModuleList(nn.Linear(width, width // heads) for _ in range(3)) for _ in range(heads)
        )
        self.out = nn.Linear(width, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The tokens, each as a mixture of all."""
        mixed = []
        for head in self.heads:
            query, key, value = (matrix(tokens) for matrix in head)  # type: ignore[union-attr]
            scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[2])
            scores = scores - scores.max(dim=2, keepdim=True).values
            weights = scores.exp() / scores.exp().sum(dim=2, keepdim=True)
            mixed.append(weights @ value)
        return self.out(torch.cat(mixed, dim=2))


class FusedAttention(nn.Module):
    """The same with one matrix, and the library's attention for all heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.inside, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The tokens, each as a mixture of all."""
        parts = self.inside(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A block of a transformer around an attention."""

    def __init__(self, attention: nn.Module, width: int) -> None:
        super().__init__()
        self.attention, self.first, self.second = attention, nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The tokens after attention and the dense layers."""
        tokens = tokens + self.attention(self.first(tokens))
        return tokens + self.feed(self.second(tokens))


@program(
    "eager_dispatch",
    culprits=("LoopedAttention.forward", "LoopedAttention"),
    also=("small_batch", "python_overhead"),
    fix="one matrix for all heads and F.scaled_dot_product_attention",
    python=True,
)
def torch_looped_heads(run: Run) -> Iterator[None]:
    """A transformer whose heads are computed one after another, in small ops."""
    attention = LoopedAttention if run.slow else FusedAttention
    blocks = nn.Sequential(*(Block(attention(96, 12), 96) for _ in range(2)))
    model = nn.Sequential(nn.Embedding(500, 96), blocks, nn.Linear(96, 500))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    texts = torch.randint(0, 500, (8, 10, 33))
    for number in range(10**6):
        text = texts[number % 8]
        logits = model(text[:, :-1])
        train_on(F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()), optimizer)
        yield


class Rollouts:
    """What some agents saw, did and got, with the values that a critic gave."""

    def __init__(self, agents: int = 192, steps: int = 96) -> None:
        rng = np.random.default_rng(0)
        self.seen = torch.from_numpy(rng.normal(size=(steps, agents, 24)).astype("float32"))
        self.did = torch.from_numpy(rng.integers(0, 6, (steps, agents)))
        self.rewards = rng.normal(size=(steps, agents)).astype("float32")
        self.values = rng.normal(size=(steps + 1, agents)).astype("float32")
        self.over = rng.random((steps, agents)) < 0.02


def _find_advantages(rollouts: Rollouts) -> np.ndarray:
    rewards, values, over = rollouts.rewards.tolist(), rollouts.values.tolist(), rollouts.over.tolist()
    advantages = []
    for agent in range(len(rewards[0])):
        last, own = 0.0, []
        for step in reversed(range(len(rewards))):
            going = 0.0 if over[step][agent] else 1.0
            error = rewards[step][agent] + 0.99 * going * values[step + 1][agent] - values[step][agent]
            last = error + 0.99 * 0.95 * going * last
            own.insert(0, last)
        advantages.append(own)
    return np.array(advantages, "float32").T


def _find_advantages_at_once(rollouts: Rollouts) -> np.ndarray:
    going = 1.0 - rollouts.over
    errors = rollouts.rewards + 0.99 * going * rollouts.values[1:] - rollouts.values[:-1]
    last, advantages = np.zeros(errors.shape[1]), np.empty(errors.shape, "float32")
    for step in reversed(range(len(errors))):
        last = errors[step] + 0.99 * 0.95 * going[step] * last
        advantages[step] = last
    return advantages


@program(
    "python_overhead",
    culprits=("_find_advantages",),
    fix="all agents at once, in NumPy",
    python=True,
)
def torch_advantages(run: Run) -> Iterator[None]:
    """Proximal policy optimization that computes the advantages agent by agent in Python, before each update."""
    rollouts = Rollouts()
    body = nn.Sequential(nn.Linear(24, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
    actor, critic = nn.Linear(128, 6), nn.Linear(128, 1)
    model = nn.ModuleList([body, actor, critic])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, fused=True)
    seen, did = rollouts.seen.flatten(0, 1), rollouts.did.flatten()
    with torch.no_grad():
        before = F.log_softmax(actor(body(seen)), dim=1).gather(1, did[:, None])[:, 0]
    returns = torch.from_numpy(rollouts.rewards).flatten()
    find = _find_advantages if run.slow else _find_advantages_at_once
    for _ in range(10**6):
        part = torch.randint(len(seen), (2048,))
        advantages = torch.from_numpy(find(rollouts)).flatten()[part]
        hidden = body(seen[part])
        now = F.log_softmax(actor(hidden), dim=1).gather(1, did[part, None])[:, 0]
        ratio = (now - before[part]).exp()
        gain = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        train_on(0.5 * F.mse_loss(critic(hidden)[:, 0], returns[part]) - gain, optimizer)
        yield


class Tagger(nn.Module):
    """Reads letters with a recurrent layer and tags each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.reader, self.tags = nn.Embedding(80, 48), nn.GRU(48, 96, batch_first=True), nn.Linear(96, 12)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Logits per letter."""
        return self.tags(self.reader(self.letters(text))[0])


def _choose_shard(slow: bool) -> list[torch.Tensor]:
    """The batches of this rank, out of two corpora that were written one behind the other."""
    generator = torch.Generator().manual_seed(1)
    comments, articles = (torch.randint(0, 80, (8, 16, length), generator=generator) for length in (16, 96))
    corpus, rank = [*comments, *articles], dist.get_rank()
    half = corpus[8 * rank : 8 * rank + 8] if slow else corpus[rank::2]
    return [batch for pair in zip(half[:4], half[4:], strict=True) for batch in pair]


@program(
    "straggler",
    culprits=("_choose_shard", "Tagger.forward", "Tagger", "aten::gru", "aten::mm", "aten::addmm", "aten::linear"),
    fix="every second batch for each rank, in place of half of the files in one piece",
    ranks=2,
    python=True,
)
def torch_short_and_long(run: Run) -> Iterator[None]:
    """One rank gets all the short texts and the other one all the long ones."""
    model = DistributedDataParallel(Tagger())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = _choose_shard(run.slow)
    for number in range(10**6):
        text = batches[number % 8]
        logits = model(text)
        train_on(F.cross_entropy(logits.flatten(0, 1), text.flatten() % 12), optimizer)
        yield


@program(
    "communication_bound",
    culprits=("gloo:all_reduce", "all_reduce", "allreduce", "DistributedDataParallel"),
    fix="the default bucket size of 25 MB",
    ranks=2,
    python=True,
)
def torch_tiny_buckets(run: Run) -> Iterator[None]:
    """A deep, narrow network whose gradients are reduced one by one, since the buckets hold no more than a few KB."""
    layers: list[nn.Module] = []
    for _ in range(24):
        layers += [nn.Linear(192, 192), nn.SiLU()]
    size: dict[str, Any] = {"bucket_cap_mb": 0.001} if run.slow else {}
    model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(192, 10)), **size)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    rows, labels = torch.randn(6, 96, 192), torch.randint(0, 10, (6, 96))
    for number in range(10**6):
        train_on(F.cross_entropy(model(rows[number % 6]), labels[number % 6]), optimizer)
        yield


@program("none", culprits=(), fix="nothing to fix: the other variant has another seed")
def torch_healthy_gan(run: Run) -> Iterator[None]:
    """A generator and a discriminator of small pictures, which lie in memory; the losses are read every 40 steps."""
    torch.manual_seed(int(run.slow))
    artist = nn.Sequential(
        *(nn.Linear(64, 48 * 49), nn.Unflatten(1, (48, 7, 7)), nn.ReLU()),
        *(nn.ConvTranspose2d(48, 32, 4, stride=2, padding=1), nn.ReLU()),
        *(nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1), nn.Tanh()),
    )
    critic = nn.Sequential(
        *(nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.LeakyReLU(0.2)),
        *(nn.Conv2d(32, 48, 4, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(48 * 49, 1)),
    )
    painting, judging = (
        torch.optim.Adam(part.parameters(), 2e-4, (0.5, 0.999), fused=True) for part in (artist, critic)
    )
    pictures, losses = torch.rand(8, 32, 1, 28, 28) * 2 - 1, []
    for number in range(10**6):
        fakes = artist(torch.randn(32, 64))
        scores = critic(torch.cat([pictures[number % 8], fakes.detach()]))
        loss = F.softplus(-scores[:32]).mean() + F.softplus(scores[32:]).mean()
        train_on(loss, judging)
        critic.requires_grad_(False)
        train_on(F.softplus(-critic(fakes)).mean(), painting)
        critic.requires_grad_(True)
        if number % 40 == 39:
            losses.append(loss.item())
        yield
