"""A loop in NumPy alone, in a pool of processes of each kind: error states, warnings as errors, subclasses, ufuncs."""

import numpy as np
import warnings
import multiprocessing
import concurrent.futures
import sys
import functools


class Tracked(np.ndarray):
    log = []  # noqa: RUF012

    def __array_finalize__(self, obj):
        Tracked.log.append(type(obj).__name__)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        Tracked.log.append(ufunc.__name__)
        return getattr(ufunc, method)(*(np.asarray(i) for i in inputs), **kwargs)


def step(w, x):
    grad = x.T @ (x @ w)
    return w - 0.01 * grad


def job(seed):
    rng = np.random.default_rng(seed)
    w = np.ones((3, 2))
    for n in range(8):
        w = step(w, rng.normal(size=(4, 3)))
    return float(w.sum())


if __name__ == "__main__":
    print(job(0), np.geterr())
    t = np.ones(3).view(Tracked)
    for n in range(6):
        t2 = t + 1
    print(Tracked.log)
    with np.errstate(all="raise"):
        try:
            np.float32(1) / np.float32(0)
        except FloatingPointError as e:
            print(e)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            np.array([1.0]) / 0
        except RuntimeWarning as e:
            print(e)
    for kind in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(kind).Pool(2) as pool:
            print(kind, pool.map(job, range(3)))
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        print(list(pool.map(functools.partial(job), range(2))))
    print(np.random.get_state()[1][:2].dtype, sorted(m for m in sys.modules if m.startswith("torch")))
