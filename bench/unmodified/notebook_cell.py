"""A notebook whose cell trains with PyTorch, executed as CI does."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

CELL = """
import sys
sys.path.insert(0, {folder!r})
import torch
from clock import CLOCK

torch.manual_seed(0)
model = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
x = torch.randn(256, 512)
for number in range(60):
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    CLOCK.tick()
CLOCK.write()
print("trained")
"""
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL.format(folder=str(Path(__file__).parent)))])
NotebookClient(book, timeout=300).execute()
print("".join(each.text for each in book.cells[0].outputs if each.name == "stdout"), end="")
