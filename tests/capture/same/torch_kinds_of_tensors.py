import torch
import warnings
from torch import nn

torch.manual_seed(0)
lin = nn.Linear(8, 8)
opt = torch.optim.SGD(lin.parameters(), lr=0.01)
for i in range(12):
    nt = torch.nested.nested_tensor([torch.randn(3, 8), torch.randn(5, 8)], layout=torch.jagged)
    out = lin(nt)
    loss = out.values().sum()
    loss.backward()
    st = torch.nested.nested_tensor([torch.randn(3, 8), torch.randn(5, 8)])
    s = torch.nested.to_padded_tensor(st, 0.0).sum()
    sp = torch.eye(8).to_sparse()
    cs = torch.eye(8).to_sparse_csr()
    y = (sp @ torch.ones(8, 8)).sum() + (cs @ torch.ones(8, 8)).sum()
    q = torch.quantize_per_tensor(torch.randn(4, 4), 0.1, 0, torch.quint8).dequantize().sum()
    z = torch.view_as_complex(torch.randn(4, 2)).abs().sum()
    me = torch.empty(4, 4, device="meta") @ torch.empty(4, 4, device="meta")
    mk = torch.randn(2, 2).to_mkldnn().to_dense().sum()
    opt.step()
    opt.zero_grad()
    print(
        f"{loss.item():.4f} {s.item():.4f} {y.item():.1f} {q.item():.3f} {z.item():.3f} {tuple(me.shape)} {mk.item():.3f}"
    )
