"""Puts a range around everything that a function does, even if it runs in pieces.

A generator or a coroutine runs in pieces.  Between them other code runs on the same thread: the consumer of the
generator, or other tasks of the event loop.  So each piece is a range of its own.  Then the ranges of a thread nest,
which all profilers require, and no range includes the time of other code.

A program may call the profiler inside a `tf.function`.  While that is traced, AutoGraph rewrites the source of every
function that is called, and of all functions below, which takes seconds for the profiler and gains nothing:
`keep_as_python` keeps it away from Stepscope's own code.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")
NewRange = Callable[[], AbstractContextManager[object]]


def keep_as_python(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a function that AutoGraph calls as it is; its mark is this attribute."""
    function.autograph_info__ = {}  # type: ignore[attr-defined]
    return function


def wrap_with_range(function: Callable[P, R], new_range: NewRange) -> Callable[P, R]:
    """The function with a range around each call, or around each piece; it stays a function of the same kind."""
    wrap = _wrap_call
    if inspect.isgeneratorfunction(function):
        wrap = _wrap_generator
    elif inspect.iscoroutinefunction(function):
        wrap = _wrap_coroutine
    elif inspect.isasyncgenfunction(function):
        wrap = _wrap_asynchronous_generator
    return cast(Callable[P, R], functools.wraps(function)(wrap(function, new_range)))


def _wrap_call(function: Callable[..., Any], new_range: NewRange) -> Callable[..., Any]:
    def traced(*args: Any, **kwargs: Any) -> Any:
        with new_range():
            return function(*args, **kwargs)

    return traced


def _wrap_generator(function: Callable[..., Any], new_range: NewRange) -> Callable[..., Any]:
    def traced(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from _run_in_pieces(function(*args, **kwargs), new_range))

    return traced


def _wrap_coroutine(function: Callable[..., Any], new_range: NewRange) -> Callable[..., Any]:
    async def traced(*args: Any, **kwargs: Any) -> Any:
        return await _Pieces(function(*args, **kwargs), new_range)

    return traced


def _wrap_asynchronous_generator(function: Callable[..., Any], new_range: NewRange) -> Callable[..., Any]:
    async def traced(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **kwargs)
        try:
            coming = generator.asend(None)
            while True:
                try:
                    item = await _Pieces(coming, new_range)
                except StopAsyncIteration:
                    return
                try:
                    coming = generator.asend((yield item))
                except GeneratorExit:
                    raise
                except BaseException as error:
                    coming = generator.athrow(error)
        finally:
            await generator.aclose()

    return traced


class _Pieces:
    """An awaitable with a range around each of its pieces."""

    def __init__(self, run: Any, new_range: NewRange) -> None:
        self._run = run
        self._new_range = new_range

    def __await__(self) -> Generator[Any, Any, Any]:
        return _run_in_pieces(self._run, self._new_range)


def _run_in_pieces(run: Any, new_range: NewRange) -> Generator[Any, Any, Any]:
    """Runs an object with a generator's methods as `yield from` does, with a range around each resumption."""
    resume, given = run.send, None
    try:
        while True:
            with new_range():
                try:
                    item = resume(given)
                except StopIteration as end:
                    return end.value
            try:
                resume, given = run.send, (yield item)
            except GeneratorExit:
                raise
            except BaseException as error:  # for example, the task that awaits it is cancelled
                resume, given = run.throw, error
    finally:
        run.close()
