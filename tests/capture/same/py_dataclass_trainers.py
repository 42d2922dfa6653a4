# modes: run watch prove
"""Trainers that are dataclasses, with slots, descriptors, caches and a metaclass, and are pickled and compared."""

import dataclasses
import functools
import inspect
import pickle
import typing

import numpy as np


@typing.dataclass_transform()
class Registers(type):
    made = []  # noqa: RUF012 - shared by all

    def __new__(meta, name, bases, space, **more):
        made = super().__new__(meta, name, bases, space)
        meta.made.append((name, sorted(more)))
        return dataclasses.dataclass(made, **more) if more else made

    def __call__(cls, *args, **kwargs):
        Registers.made.append(("call", cls.__name__))
        return super().__call__(*args, **kwargs)


class Counted:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, trainer, owner=None):
        return self if trainer is None else trainer.__dict__.setdefault(self.name, 0)

    def __set__(self, trainer, value):
        trainer.__dict__[self.name] = value


@dataclasses.dataclass(slots=True, weakref_slot=True, order=True)
class Config:
    rate: float = 0.1
    sizes: tuple = (8, 8)
    names: list = dataclasses.field(default_factory=list, compare=False, repr=False)


class Base(metaclass=Registers):
    def __init_subclass__(cls, **more):
        super().__init_subclass__()
        cls.kinds = sorted(more)


class Trainer(Base, eq=True):
    config: Config
    steps = Counted()

    @functools.cached_property
    def weights(self):
        return np.ones(self.config.sizes)

    @functools.singledispatchmethod
    def step(self, batch):
        raise TypeError(type(batch).__name__)

    @step.register
    def _(self, batch: np.ndarray):
        self.steps += 1
        self.weights -= self.config.rate * np.tanh(self.weights @ batch)
        return float(self.weights.sum())


@functools.lru_cache(maxsize=4)
def batch(at):
    return np.full((8, 8), at / 10)


trainer = Trainer(Config(names=["a"]))
for at in range(40):
    loss = trainer.step(batch(at % 6))
print(round(loss, 6), trainer.steps, trainer, batch.cache_info(), Registers.made)
print(inspect.signature(Trainer), inspect.signature(trainer.step), Trainer.kinds, sorted(vars(trainer)))
again = pickle.loads(pickle.dumps(trainer))
print(again == trainer, again.steps, np.array_equal(again.weights, trainer.weights), again.config < Config(0.2))
print(dataclasses.asdict(trainer.config), dataclasses.replace(trainer.config, rate=1), sorted(Config.__slots__))
try:
    trainer.step("no")
except TypeError as error:
    print(error, error.__traceback__.tb_next.tb_frame.f_code.co_name)
