"""Objects that tell of every look at them are locals, globals, attributes and modules of a program that trains."""

import sys
import types
import torch


class Tells:
    def __getattribute__(self, name):
        print("attribute", name, file=out)
        return object.__getattribute__(self, name)

    def __eq__(self, other):
        print("eq", file=out)
        return True

    def __hash__(self):
        print("hash", file=out)
        return 1

    def __bool__(self):
        print("bool", file=out)
        raise ValueError

    def __len__(self):
        print("len", file=out)
        return 10**9

    def __iter__(self):
        print("iter", file=out)
        return iter(())

    def __repr__(self):
        print("repr", file=out)
        return "Tells"

    def __array__(self, *a):
        print("array", file=out)
        raise TypeError

    def __getitem__(self, k):
        print("item", file=out)
        raise IndexError

    def __call__(self, *a, **k):
        print("call", file=out)

    def __del__(self):
        print("del", file=out)

    __class__ = property(lambda self: print("class", file=out) or torch.Tensor)


class Odd(types.ModuleType):
    def __getattr__(self, name):
        print("module attribute", name, file=out)
        raise AttributeError(name)


out = sys.stdout
sys.modules["odd_module"] = Odd("odd_module")
sys.modules["none_module"] = None
sys.modules["tells_module"] = 3.5
tells = Tells()
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.tells = tells


class Data:
    def __init__(self):
        self.tells = tells
        self.n = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        if self.n > 9:
            raise StopIteration
        return tells, torch.ones(2, 4)


def train():
    here = tells  # noqa: F841 - it is looked at
    for other, batch in Data():
        local = Tells()
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        print("step")
        del local


train()
print("end")
del sys.modules["odd_module"], sys.modules["none_module"], sys.modules["tells_module"]
