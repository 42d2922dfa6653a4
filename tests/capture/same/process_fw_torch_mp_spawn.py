import torch.multiprocessing as mp


def f(i, x):
    print(i, x, flush=True) if i == 0 else None


if __name__ == "__main__":
    mp.spawn(f, (3,), nprocs=2)
