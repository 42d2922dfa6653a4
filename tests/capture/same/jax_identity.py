# modes: run api
"""What a jitted function is, to whoever looks at it."""

import copy
import functools
import gc
import inspect
import io
import pickle
import sys
import typing
import weakref

import jax
from _show import show


def plain(x: int, *, scale: float = 2.0) -> float:
    """Scales."""
    return x * scale


@jax.jit
def decorated(x: int, y: int = 3):
    """Adds."""
    return x + y


named = jax.jit(plain, static_argnames="scale")
of_lambda = jax.jit(lambda x: x)
of_partial = jax.jit(functools.partial(plain, scale=3.0))
for i in range(6):
    decorated(i)
for name, function in {"plain": named, "decorated": decorated, "lambda": of_lambda, "partial": of_partial}.items():
    show(
        f"{name} type", lambda: (type(function).__name__, type(function).__module__, type(function) is type(of_lambda))
    )
    for attribute in (
        "__name__",
        "__qualname__",
        "__module__",
        "__doc__",
        "__wrapped__",
        "__annotations__",
        "__defaults__",
    ):
        show(f"{name} {attribute}", lambda: getattr(function, attribute))
    show(f"{name} signature", lambda: inspect.signature(function))
    show(f"{name} source", lambda: inspect.getsource(function)[:30])
    show(f"{name} file", lambda: inspect.getsourcefile(function).rpartition("/")[2])
    show(f"{name} unwrap", lambda: inspect.unwrap(function) is function.__wrapped__)
    show(f"{name} repr", lambda: function)
    show(f"{name} vars", lambda: sorted(vars(function)))
    show(f"{name} dir", lambda: sorted(dir(function)))
    show(f"{name} kinds", lambda: (inspect.isfunction(function), inspect.isroutine(function), callable(function)))
    show(
        f"{name} equal",
        lambda: (
            function == function,
            function != function,
            function in {function: 1},
            hash(function) == hash(function),
        ),
    )
    show(
        f"{name} refs", lambda: (weakref.getweakrefcount(function), sys.getrefcount(function), gc.is_tracked(function))
    )
    show(
        f"{name} set",
        lambda: (setattr(function, "tag", 1), function.tag, delattr(function, "tag"), hasattr(function, "tag")),
    )
    show(f"{name} wraps", lambda: vars(functools.wraps(function)(lambda x: x)).keys())
    show(f"{name} copy", lambda: (copy.copy(function)(2), copy.deepcopy([function])[0](2)))
    show(f"{name} pickle", lambda: pickle.loads(pickle.dumps(function))(2))
    show(f"{name} cache", lambda: (function._cache_size(), function.clear_cache(), function._cache_size()))
show("hints", lambda: typing.get_type_hints(decorated))
show(
    "jit itself",
    lambda: (
        jax.jit.__name__,
        jax.jit.__module__,
        type(jax.jit).__name__,
        inspect.signature(jax.jit).parameters.keys(),
    ),
)
show("jit pickles", lambda: pickle.loads(pickle.dumps(jax.jit)) is jax.jit)
show("jit source", lambda: inspect.getsource(jax.jit)[:40])
show("pmap itself", lambda: (jax.pmap.__name__, type(jax.pmap).__name__, inspect.signature(jax.pmap).parameters.keys()))
show("singledispatch", lambda: functools.singledispatch(decorated)(1))
show("lru", lambda: functools.lru_cache(decorated)(1))
for other in ("cloudpickle", "dill", "joblib"):
    try:
        module = __import__(other)
    except ImportError:
        continue
    if other == "joblib":
        file = io.BytesIO()
        show(other, lambda: (module.dump(decorated, file), file.seek(0), module.load(file)(1))[2])
    else:
        show(other, lambda: module.loads(module.dumps(decorated))(1))
        show(f"{other} partial", lambda: module.loads(module.dumps(functools.partial(named, scale=4.0)))(1))
alive = weakref.ref(of_partial)
del of_partial, function
print("gone", alive() is None)
