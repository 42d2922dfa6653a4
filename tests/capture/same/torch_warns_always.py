import warnings
import torch

warnings.simplefilter("always")
torch.set_warn_always(True)
seen = []
warnings.showwarning = lambda *a, **k: seen.append((a[1].__name__, str(a[0])[:60], a[2].rpartition("/")[2], a[3]))
m = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(m.parameters(), lr=0.1)
s = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
torch.autograd.set_detect_anomaly(True)
torch.use_deterministic_algorithms(True, warn_only=True)
for i in range(14):
    opt.zero_grad()
    m(torch.ones(2, 4)).sum().backward()
    opt.step()
    s.step()
    torch.ones(3).index_add_(0, torch.tensor([0, 0]), torch.ones(2))
    torch.arange(4).reshape(2, 2).float().T.T
    if i == 7:
        s2 = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(m.parameters(), lr=0.1), 1)
        s2.step()
print(len(seen), *seen, sep="\n")
