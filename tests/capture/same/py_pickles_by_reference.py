# modes: run api watch prove
import concurrent.futures
import copy
import copyreg
import dataclasses
import enum
import functools
import multiprocessing
import pickle
import pickletools
import typing


class Color(enum.Flag):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: float = dataclasses.field(default=0.5, compare=False)
    color: Color = Color.RED


class Pair(typing.NamedTuple):
    a: Point
    b: Point

    def add(self):
        return self.a.x + self.b.x


@functools.singledispatch
def describe(thing):
    return "thing"


@describe.register
def _(thing: Point):
    return f"point {thing.x}"


@functools.lru_cache(maxsize=3)
def slow(x):
    return x * x


class Reduced:
    def __reduce__(self):
        return Point, (7,)


if __name__ == "__main__":
    pair = Pair(Point(1), Point(2, 3.0, Color.RED | Color.BLUE))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        text = pickle.dumps(pair, protocol)
        print(protocol, len(text), pickle.loads(text) == pair, b"__main__" in text)
    for each in (describe, slow, Pair.add, pair.add, Color.RED, Point, functools.partial(slow, 2), Reduced()):
        text = pickle.dumps(each)
        print(len(text), sum(1 for _ in pickletools.genops(text)), type(pickle.loads(text)).__name__)
    print(describe(pair.a), describe(pair), [slow(i % 4) for i in range(8)], slow.cache_info())
    print(copy.deepcopy(pair) == pair, copyreg.dispatch_table.keys() >= {complex}, Point.__module__)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        print(list(pool.map(Pair.add, [pair, pair])), list(pool.map(describe, [pair.a, 1])))
        print(pool.submit(dataclasses.replace, pair.a, x=9).result())
