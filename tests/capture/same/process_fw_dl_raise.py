# arguments: spawn fork forkserver
import sys

from torch.utils.data import DataLoader, Dataset


class D(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        raise KeyError("item")


if __name__ == "__main__":
    try:
        for b in DataLoader(D(), 4, num_workers=1, multiprocessing_context=sys.argv[1]):
            pass
    except KeyError as e:
        print("KeyError", "Caught KeyError in DataLoader worker process 0" in str(e))
