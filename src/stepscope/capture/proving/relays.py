"""Makes generators places: each of their steps becomes a call of a function, which can be changed like any other.

A generator that runs cannot be changed, and what iterates over it cannot be told.  So the functions that the user has
named get a decorator when their file is compiled: where one makes a generator, another one passes on what it yields.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
from collections.abc import Callable, Generator, Sequence
from importlib.machinery import SourceFileLoader
from types import FunctionType
from typing import Any

from stepscope.capture.patches import Call, Undo, undo_all, wrap_attribute
from stepscope.capture.places import is_users_file
from stepscope.capture.proving.places import RESUMED, is_file

_DECORATOR = "__stepscope_relay__"


def install(places: Sequence[str]) -> Undo:
    """Decorates the functions of the program's files that are compiled from now on and have the names of places."""

    def get_code_anew(get_code: Call, loader: SourceFileLoader, name: str) -> Any:
        if not is_users_file(loader.path):
            return get_code(loader, name)
        return loader.source_to_code(loader.get_data(loader.path), loader.path)  # what is cached has no decorators

    def decorate(compile_source: Call, loader: SourceFileLoader, data: Any, path: str, **options: Any) -> Any:
        wanted = [name for file, _, name in (place.rpartition(":") for place in places) if is_file(path, file)]
        if wanted and is_users_file(path) and isinstance(data, bytes) and b"yield" in data:
            data = _decorate_functions(ast.parse(data, path), wanted)
        return compile_source(loader, data, path, **options)

    setattr(builtins, _DECORATOR, relay)  # it stays: a function may be defined later
    return undo_all(
        wrap_attribute(SourceFileLoader, "get_code", get_code_anew),
        wrap_attribute(SourceFileLoader, "source_to_code", decorate),
    )


def _decorate_functions(tree: ast.Module, wanted: Sequence[str]) -> ast.Module:
    names, lines = {name.rpartition(".")[2] for name in wanted}, [int(name) for name in wanted if name.isdigit()]
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        if node.name in names or any(node.lineno <= line <= (node.end_lineno or 0) for line in lines):
            node.decorator_list.append(ast.copy_location(ast.Name(_DECORATOR, ast.Load()), node))
    return tree


def relay(function: FunctionType) -> Callable[..., Any]:
    """A function whose generators are those of another one, each step of them a call; others as they are."""
    if not inspect.isgeneratorfunction(function):
        return function
    resume = RESUMED.setdefault(function.__code__, FunctionType(_resume.__code__, globals(), "resume"))

    @functools.wraps(function)
    def relayed(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        step = functools.partial(generator.send, None)
        while True:
            try:
                item = resume(step)
            except StopIteration as end:
                return end.value
            try:
                step = functools.partial(generator.send, (yield item))
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:
                step = functools.partial(generator.throw, error)

    return relayed


def _resume(step: Callable[[], Any]) -> Any:
    return step()
