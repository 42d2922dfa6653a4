"""What the finders report of programs that mark no steps."""

from __future__ import annotations

import copy
import functools
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from stepscope.capture.steps import jax as jax_finder
from stepscope.capture.steps import keras as keras_finder
from stepscope.capture.steps import torch as torch_finder
from stepscope.capture.steps.finding import GradientCalls
from stepscope.capture.steps.step_loop import OPTIMIZED, StepSource
from stepscope.kernels import observe


class Listener:
    """Keeps what it is told, and whether `optimizer.step()` was still on the stack then."""

    active = True

    def __init__(self) -> None:
        self.ends: list[str] = []
        self.sources: list[StepSource] = []
        self.expected = 0
        self.inside: list[bool] = []

    def expect(self, rank: int) -> None:
        self.expected = rank

    def start_step(self, source: StepSource) -> None:
        """Nothing begins by itself here."""

    def end_step(self, source: StepSource, another_follows: bool = True) -> None:
        self.ends.append(source.name)
        self.sources.append(source)
        self.inside.append(any(Path(frame.filename).name == "optimizer.py" for frame in traceback.extract_stack()))


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def make_optimizer(torch):
    """Makes objects of a class of optimizers that PyTorch has not wrapped yet."""

    class Optimizer(torch.optim.SGD):
        inner = None

        def step(self):
            if self.inner is not None:
                self.inner.step()

    return lambda: Optimizer([torch.ones(1)])


@pytest.fixture
def watch(torch) -> Iterator:
    from stepscope.capture.steps.torch import install

    undone = []

    def begin() -> Listener:
        listener = Listener()
        undone.append(install(torch, listener))
        return listener

    yield begin
    for undo in undone:
        undo()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_step_of_pytorch_ends_once_the_optimizer_has_returned(make_optimizer, watch, when):
    early = make_optimizer() if when == "before" else None
    listener = watch()
    optimizer = early or make_optimizer()

    optimizer.step()
    optimizer.step()

    assert listener.ends == ["one per optimizer.step() of PyTorch"] * 2
    assert listener.inside == [False, False]


def test_each_optimizer_is_a_source_of_its_own(make_optimizer, watch):
    listener = watch()
    generator, discriminator = make_optimizer(), make_optimizer()

    for optimizer in (generator, discriminator, generator, discriminator):
        optimizer.step()

    first, second, *again = listener.sources
    assert first != second
    assert again == [first, second]


def test_an_optimizer_with_the_address_of_one_that_is_gone_is_another_source(make_optimizer, watch):
    listener = watch()
    for _ in range(20):
        optimizer = make_optimizer()
        optimizer.step()
        optimizer.step()

    assert len(set(listener.sources)) == 20


def test_of_an_optimizer_that_calls_another_one_the_outer_call_counts(make_optimizer, watch):
    listener = watch()
    outer = make_optimizer()
    outer.inner = make_optimizer()

    outer.step()
    outer.step()

    assert len(listener.ends) == 2
    assert listener.inside == [False, False]


def minimize(torch, parameter, times):
    """A loop with an optimizer of its own, and a penalty on the gradient, which is differentiated again."""
    for _ in range(times):
        loss = (parameter**2).sum()
        (slope,) = torch.autograd.grad(loss, parameter, create_graph=True)
        (loss + slope.sum()).backward()
        with torch.no_grad():
            parameter -= 0.1 * parameter.grad
            parameter.grad = None


def test_steps_of_an_own_optimizer_are_the_gradients_that_it_uses(torch, watch, monkeypatch):
    monkeypatch.setattr(torch_finder, "_find_subclasses", lambda kind: iter(()))  # other tests have made optimizers
    listener = watch()
    minimize(torch, torch.ones(3, requires_grad=True), 2)
    assert listener.ends == ["one per backward() of PyTorch"] * 2


def test_an_optimizer_that_is_made_is_expected_to_step_before_gradients_count(
    torch, watch, make_optimizer, monkeypatch
):
    kind = type(make_optimizer())
    monkeypatch.setattr(torch_finder, "_find_subclasses", lambda _: iter(kinds))
    listener, kinds = watch(), []
    minimize(torch, torch.ones(3, requires_grad=True), 1)
    assert listener.expected == 0
    kinds = [kind]
    minimize(torch, torch.ones(3, requires_grad=True), 1)
    assert listener.expected == OPTIMIZED


def watched(end_step):
    """A function that calls what it is given, and is observed as one that computes gradients."""
    listener = SimpleNamespace(active=True, end_step=end_step)
    calls = GradientCalls(listener, "torch", str, lambda _: True)
    return observe.stand_in(lambda call: call(), calls.before, calls.after, calls.failed)


def test_of_two_lines_that_compute_gradients_each_is_a_source():
    sources = []
    differentiate = watched(sources.append)
    for _ in range(3):
        differentiate(list)
        differentiate(list)
    assert [source == sources[0] for source in sources] == [True, False] * 3


def test_gradients_inside_of_gradients_belong_to_them():
    sources = []
    differentiate = watched(sources.append)
    differentiate(lambda: differentiate(list))
    assert len(sources) == 1


def test_a_step_that_fails_is_none(make_optimizer, watch):
    listener = watch()
    optimizer = make_optimizer()
    optimizer.inner = object()

    with pytest.raises(AttributeError):
        optimizer.step()
    optimizer.inner = None
    optimizer.step()

    assert len(listener.ends) == 1


def test_an_optimizer_that_is_made_in_each_step_ends_the_steps_of_the_one_before(watch, make_optimizer):
    listener = watch()
    optimizer, other = make_optimizer(), make_optimizer()
    for _ in range(3):
        optimizer.step()
        other.step()
        optimizer = make_optimizer()

    first, second = listener.sources[0], listener.sources[1]
    assert first != second
    assert listener.sources == [first, second] * 3


def test_nothing_is_reported_once_the_watch_has_ended(torch, make_optimizer):
    from stepscope.capture.steps.torch import install

    before, hook = make_optimizer(), torch.optim.Optimizer.profile_hook_step
    step = type(before).step
    listener = Listener()
    undo = install(torch, listener)
    optimizer = make_optimizer()

    undo()
    optimizer.step()
    before.step()

    assert listener.ends == []
    assert torch.optim.Optimizer.profile_hook_step is hook
    assert type(before).step is step


def test_an_update_of_keras_that_runs_at_once_ends_a_step_and_one_that_is_traced_does_not(monkeypatch):
    class Base:
        inner = None

        def apply(self, slopes: str) -> str:
            return self.inner.apply(slopes) if self.inner is not None else slopes

    class Optimizer(Base): ...

    class CallbackList:
        def on_train_batch_begin(self, batch: int) -> None: ...
        def on_train_batch_end(self, batch: int) -> None: ...

    keras = SimpleNamespace(
        callbacks=SimpleNamespace(CallbackList=CallbackList), optimizers=SimpleNamespace(Optimizer=Optimizer)
    )
    tensorflow = SimpleNamespace(executing_eagerly=lambda: eager)
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    monkeypatch.setitem(
        sys.modules, "keras.src.backend.common.stateless_scope", SimpleNamespace(in_stateless_scope=bool)
    )
    listener, optimizer, eager = Listener(), Optimizer(), True
    optimizer.inner = Optimizer()
    undo = keras_finder.install(keras, listener)

    assert optimizer.apply("slopes") == "slopes"
    eager = False
    assert optimizer.apply("slopes") == "slopes"
    eager = True
    undo()
    optimizer.apply("slopes")

    assert listener.ends == ["one per update of Keras' optimizer"]


class Array:
    def __init__(self, *shape: int) -> None:
        self.shape = shape


PARAMETERS, STATES, LABELS, NUMBER = Array(8, 3), Array(64, 8), Array(64), Array()


@pytest.mark.parametrize(
    ("taken", "given", "size"),
    [
        ((PARAMETERS, STATES), (PARAMETERS,), 3),  # an update
        ((PARAMETERS, STATES), (NUMBER,), 2),  # what plays with the same parameters
        ((PARAMETERS, STATES, LABELS), (PARAMETERS, NUMBER), 4),  # a training step
        ((PARAMETERS, STATES, LABELS), (NUMBER,), 3),  # an evaluation
        ((PARAMETERS, NUMBER), (NUMBER,), 2),  # numbers are no parameters
    ],
)
def test_of_the_functions_of_jax_the_one_that_gives_the_parameters_back_is_the_largest(taken, given, size):
    jitted = jax_finder.JittedCalls(SimpleNamespace(active=True))
    traced = SimpleNamespace(in_avals=flat(taken), params={"jaxpr": SimpleNamespace(out_avals=flat(given))})
    function = len
    infer = jax_finder.TracedFunctions(jitted)

    infer.after(infer.before(None, (function, "options", taken, {})), (traced, taken))

    assert jitted.sizes[id(function)][0] == size


def test_a_jitted_function_that_is_watched_is_the_one_that_jax_made(monkeypatch):
    jax = pytest.importorskip("jax")
    sources, listener = [], SimpleNamespace(active=True, end_step=lambda source: sources.append(source))
    before = jax.jit
    undo = jax_finder.install(jax, listener)
    try:
        assert jax.jit is before

        @functools.partial(jax.jit, static_argnames="call")
        def loss(self, call=1):
            return self["weights"].sum() * call

        slope = jax.jit(jax.grad(loss))
        weights = {"weights": jax.numpy.ones(3)}

        assert type(loss) is type(jax.jit(len))
        assert (float(loss(self=weights, call=2)), float(loss(weights))) == (6.0, 3.0)
        assert slope(weights)["weights"].tolist() == [1.0, 1.0, 1.0]
        assert copy.copy(loss) is not None
        with pytest.raises(TypeError):
            loss()
    finally:
        undo()
    assert float(loss(weights)) == 3.0
    assert [source.name.rpartition(" ")[2] for source in sources] == ["loss", "loss", "loss"]
    assert [source.size for source in sources] == [1, 1, 2]
    assert len({source.key for source in sources}) == 2


def test_a_function_that_is_jitted_anew_in_each_step_is_one_source_and_two_of_one_factory_are_two():
    jax = pytest.importorskip("jax")
    sources, listener = [], SimpleNamespace(active=True, end_step=lambda source: sources.append(source))

    def loss_of(scale):
        return jax.jit(jax.grad(lambda weights: weights * scale))

    def negate(weights):
        return -weights

    undo = jax_finder.install(jax, listener)
    try:
        for step in range(3):
            loss_of(step)(1.0)
        for function in [jax.jit(negate), jax.jit(negate)]:
            function(1.0)
    finally:
        undo()
    anew, factory = sources[:3], sources[3:]
    assert len({source.key for source in anew}) == 1
    assert len({source.key for source in factory}) == 2


def test_steps_of_a_jax_program_that_jits_nothing_are_the_gradients_that_it_computes():
    jax = pytest.importorskip("jax")
    sources, listener = [], SimpleNamespace(active=True, end_step=lambda source: sources.append(source))

    def loss(weights):
        return (weights * weights).sum()

    undo = jax_finder.install(jax, listener)
    try:
        weights = jax.numpy.ones(3)
        for _ in range(3):
            weights = weights - 0.1 * jax.grad(loss)(weights)
        sources_of_loop = list(sources)
        jax.jit(jax.grad(loss))(weights)  # what is traced is part of the program
        jax.grad(lambda outer: jax.grad(loss)(outer).sum())(weights)
    finally:
        undo()
    assert [source.name for source in sources_of_loop] == ["one per computation of gradients"] * 3
    assert len({source.key for source in sources_of_loop}) == 1
    assert [source.name for source in sources[3:]] == [
        "one per call of the jitted function loss", "one per computation of gradients"
    ]  # fmt: skip


def flat(tree: object) -> tuple[object, ...]:
    """The leaves of a value or a tuple."""
    return tuple(tree) if isinstance(tree, tuple) else (tree,)
