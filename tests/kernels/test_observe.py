"""Calls, returns and variables that are seen without a trace."""

from __future__ import annotations

import _thread
import copy
import functools
import inspect
import operator
import pickle
import queue
import signal
import sys
import traceback
import weakref
from types import FunctionType

import pytest

from stepscope.kernels import observe


class Log:
    """An observer that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def before(self, function, args):
        self.told.append(("before", args))
        return "state"

    def after(self, state, result):
        self.told.append((state, result))

    def failed(self, state):
        self.told.append((state, "failed"))

    @property
    def hooks(self):
        return self.before, self.after, self.failed


class Counter:
    def __call__(self, self_=0, /, *args, call=1, **named):
        return self_, args, call, named

    def __next__(self):
        raise StopIteration

    def method(self, call=2):
        """Doubles."""
        return call * 2


@pytest.fixture
def log():
    return Log()


def test_calls_of_a_function_are_seen_in_place(log):
    counter, function = Counter(), Counter.__call__
    assert observe.observe_calls(function, *log.hooks)
    try:
        assert counter(1, 2, call=3, state=4) == (1, (2,), 3, {"state": 4})
        assert Counter.__call__ is function
        assert not observe.observe_calls(function, *log.hooks)
    finally:
        observe.end_observing(function)
    counter()

    assert log.told == [("before", (counter, 1, 2)), ("state", (1, (2,), 3, {"state": 4}))]


def test_an_exception_passes_an_observed_call_as_any_other(log):
    observe.observe_calls(Counter.__next__, *log.hooks)
    try:
        with pytest.raises(StopIteration) as raised:
            next(Counter())
    finally:
        observe.end_observing(Counter.__next__)

    assert [frame.name for frame in traceback.extract_tb(raised.tb)][1:] == ["__next__"]
    assert log.told[-1] == ("state", "failed")


def test_all_objects_of_a_type_have_one_observer_and_live_no_longer(log):
    first, second, other = (functools.partial(abs, number) for number in (-1, -2, -3))
    assert observe.observe_member(first, *log.hooks)
    assert observe.observe_member(second, *log.hooks)
    assert (first(), second(), other()) == (1, 2, 3)
    assert [told[1] for told in log.told if told[0] == "state"] == [1, 2]

    observe.end_observing_members(functools.partial)
    alive = weakref.ref(first)
    assert first() == 1
    del first
    assert alive() is None
    assert len(log.told) == 4


def test_a_stand_in_is_the_function_but_for_its_type(log, monkeypatch):
    original = Counter.method
    monkeypatch.setattr(Counter, "method", observe.stand_in(original, *log.hooks))
    counter = Counter()

    assert counter.method(call=3) == 6
    assert Counter.method == original
    assert original == Counter.method
    assert hash(Counter.method) == hash(original)
    assert isinstance(Counter.method, FunctionType)
    assert repr(Counter.method) == repr(original)
    assert inspect.signature(counter.method) == inspect.signature(functools.partial(original, counter))
    assert inspect.getsource(Counter.method) == inspect.getsource(original)
    assert pickle.loads(pickle.dumps(Counter.method)) is Counter.method
    assert copy.deepcopy(Counter.method).__code__ is original.__code__
    assert Counter.method.__doc__ == "Doubles."
    assert counter.method.__self__ is counter
    assert counter.method == counter.method
    assert log.told == [("before", (counter,)), ("state", 6)]


def test_a_stand_in_may_call_something_else():
    longer = observe.stand_in(len, around=lambda count, text: count(text) + 1)
    assert longer("four") == 5
    assert longer == len


def test_calls_may_be_diverted_and_come_back():
    call = functools.partial(divmod, 7)

    undo = observe.divert_calls(call, lambda direct: lambda *args, **named: (direct(*args), named))
    assert call(2, self=1) == ((3, 1), {"self": 1})
    assert observe.divert_calls(call, lambda direct: direct) is None
    undo()

    assert call(2) == (3, 1)
    assert observe.divert_calls(object(), lambda direct: direct) is None


def test_the_end_of_a_running_function_is_seen_after_it():
    order = []

    def run():
        observe.when_returned(sys._getframe(), lambda: order.append("returned"))
        order.append("runs")
        return "result"

    order.append(run())

    assert order == ["runs", "returned", "result"]


def test_a_request_to_end_the_program_comes_once_the_function_has_returned():
    def end():
        raise SystemExit

    def run():
        observe.when_returned(sys._getframe(), end)
        return "result"

    with pytest.raises(SystemExit):
        run()
        for _ in range(100):  # between two instructions, soon
            pass


class TimeIsOverError(Exception):
    """What the program raises at a signal."""


@pytest.fixture
def on_signal():
    def interrupt(number, frame):
        raise TimeIsOverError

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield interrupt
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("at", ["before", "after", "failed"])
def test_what_the_program_raises_at_a_signal_reaches_it_from_an_observer(log, on_signal, at):
    def interrupted(*args):
        signal.raise_signal(signal.SIGUSR1)
        return "state"

    setattr(log, at, interrupted)
    divide = observe.stand_in(operator.truediv, *log.hooks)

    with pytest.raises(TimeIsOverError) as raised:
        divide(1, at != "failed")

    assert [each.name for each in raised.traceback][1:] == ["interrupt"]  # and no code of an observer


def test_what_the_program_raises_at_a_signal_reaches_it_once_the_function_has_returned(on_signal):
    def function():
        observe.when_returned(sys._getframe(), lambda: signal.raise_signal(signal.SIGUSR1))
        return "returned"

    result = None
    with pytest.raises(TimeIsOverError):
        result = function()
        for _ in range(100):
            pass

    assert result in (None, "returned")


def test_a_mistake_of_an_observer_is_told_and_the_call_is_made(log, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    log.before = log.after = lambda *args: 1 / 0

    assert observe.stand_in(operator.truediv, *log.hooks)(1, 2) == 0.5
    assert [each.exc_type for each in told] == [ZeroDivisionError]


def test_an_observer_without_room_on_the_stack_is_left_out(log, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)

    def deeper(*args):
        return deeper(*args)

    log.before = log.after = deeper

    assert observe.stand_in(operator.truediv, *log.hooks)(1, 2) == 0.5
    assert told == []


def test_a_request_to_end_the_program_spares_threads_that_have_not_begun_yet():
    begun, started = queue.SimpleQueue[None](), 200

    def end():
        for _ in range(started):  # before Python 3.12 they have the number of this thread until they begin
            _thread.start_new_thread(begun.put, (None,))
        raise SystemExit

    def run():
        observe.when_returned(sys._getframe(), end)

    with pytest.raises(SystemExit):
        run()
        for _ in range(100):
            pass

    for _ in range(started):
        begun.get(timeout=60)


def test_variables_are_read_and_not_written():
    def run(first, second=2, *rest, **named):
        inner = [first]
        names = locals()

        def closure():
            return inner, second

        found = observe.read_locals(sys._getframe())
        return names, found, closure

    names, found, closure = run(1, three=3)

    assert sorted(names) == ["first", "inner", "named", "rest", "second"]
    assert sorted(found) == ["closure", "first", "inner", "named", "names", "rest", "second"]
    assert (found["first"], found["inner"], found["named"]) == (1, [1], {"three": 3})
    assert found["closure"] is closure


def test_variables_of_a_generator_and_of_a_class_are_read():
    def generate():
        one = 1
        yield observe.read_locals(sys._getframe())
        del one
        two = 2
        yield observe.read_locals(sys._getframe())
        return two

    class Body:
        number = 1
        found = observe.read_locals(sys._getframe())

    assert list(generate()) == [{"one": 1}, {"two": 2}]
    assert Body.found["number"] == 1


def test_reading_keeps_no_value_alive():
    value = object()
    before = sys.getrefcount(value)
    for _ in range(5):
        observe.read_locals(sys._getframe())
    assert sys.getrefcount(value) == before
