import torch.multiprocessing as mp


def f(i):
    if i == 1:
        raise ValueError("rank 1")


if __name__ == "__main__":
    try:
        mp.spawn(f, nprocs=2)
    except mp.ProcessRaisedException as e:
        print("raised", "ValueError: rank 1" in str(e), e.error_index)
