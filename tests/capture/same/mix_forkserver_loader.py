# modes: run watch
# timeout: 240
"""Workers of a fork server feed a model whose step is compiled by JAX; functions at the end print in their order."""

import atexit
import multiprocessing

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, at):
        return torch.tensor([float(at), float(at * at)])


def main():
    import jax
    import jax.numpy as jnp

    traced = []

    @jax.jit
    def step(weights, batch):
        traced.append(batch.shape)
        return weights - 1e-4 * jax.grad(lambda w: jnp.square(batch @ w).mean())(weights)

    atexit.register(lambda: print("end", len(traced), len(multiprocessing.active_children())))
    atexit.register(print, "first")
    context = multiprocessing.get_context("forkserver")
    loader = DataLoader(
        Squares(), batch_size=4, num_workers=2, multiprocessing_context=context, persistent_workers=True
    )
    weights = jnp.ones(2)
    for _ in range(3):
        for batch in loader:
            weights = step(weights, batch.numpy())
    print([round(float(each), 4) for each in weights], traced)


if __name__ == "__main__":
    main()
