# modes: run api watch
# timeout: 300
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        yield from (torch.full((2,), float(i + 10 * info.id)) for i in range(3))


def collate(batch):
    return torch.stack(batch).sum(0)


def work(rank, model, queue):
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for _ in range(8):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    queue.put((rank, [name for name, each in model.named_parameters() if each.is_shared()]))


def initialize(worker):
    torch.manual_seed(worker)


if __name__ == "__main__":
    model = torch.nn.Linear(3, 1)
    model.share_memory()
    for method in ("fork", "spawn"):
        context = mp.get_context(method)
        queue = context.SimpleQueue()
        children = [context.Process(target=work, args=(rank, model, queue)) for rank in range(2)]
        for child in children:
            child.start()
        print(method, sorted(queue.get() for _ in children))
        for child in children:
            child.join()
        print([child.exitcode for child in children])
        loader = DataLoader(
            Stream(), batch_size=2, num_workers=2, multiprocessing_context=method, collate_fn=collate,
            worker_init_fn=initialize, persistent_workers=method == "fork",
        )  # fmt: skip
        for _ in range(2):
            print(sorted(batch.tolist() for batch in loader))
    try:
        mp.spawn(collate, args=(1, 2), nprocs=1)
    except mp.ProcessRaisedException as error:
        print(type(error).__name__, str(error).strip().splitlines()[-1])
