"""Reads the words of a command, by the declarations in its signature: the only reader of words there is."""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from stepscope.cli.options import STDOUT, Option
from stepscope.errors import UsageError
from stepscope.records import dataclass

HELP = ("--help", "-h")


class HelpWanted(Exception):  # noqa: N818 - it is no error
    """The words ask for the help of their command."""


@dataclass(frozen=True)
class ParsedNames:
    """What a command may ask about its words besides their values, by a parameter of this type.

    Attributes:
        fields: the parameters that stood on the command line.
        names: all names of options that the command has.
    """

    fields: frozenset[str]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a command.

    Attributes:
        field: its name in the function.
        option: what was declared.
        type: of one value: str, int, float, bool, Path, an Enum, or a tuple of the texts that are allowed.
        repeatable: whether its values are a list.
        default: the value if it is not given; `inspect.Parameter.empty` if it has to be.
    """

    field: str
    option: Option
    type: Any
    repeatable: bool
    default: Any

    @property
    def is_argument(self) -> bool:
        """Whether it has no name on the command line."""
        return not self.option.names

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return self.type is bool

    @property
    def is_required(self) -> bool:
        """Whether it must be given."""
        return self.default is inspect.Parameter.empty

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"argument '{self.option.value}'" if self.is_argument else f"option {self.spelled}"

    @property
    def spelled(self) -> str:
        """Its names on the command line."""
        return " / ".join(f"'{name}'" for name in self.option.names) or f"'{self.option.value}'"

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that are allowed; empty if any is."""
        if isinstance(self.type, tuple):
            return self.type
        return tuple(map(str, self.type)) if isinstance(self.type, type) and issubclass(self.type, Enum) else ()

    def read(self, text: str) -> Any:
        """The value of a text.  Raises UsageError."""
        if self.choices and text not in self.choices:
            self._refuse(f"{text!r} is not one of {', '.join(map(repr, self.choices))}")
        if isinstance(self.type, tuple):
            return text
        try:
            value = self.type(text)
        except ValueError:
            self._refuse(f"{text!r} is not a {'whole number' if self.type is int else 'number'}")
        low, high = self.option.least, self.option.most
        if low is not None and not value >= low:  # NaN fails too
            self._refuse(f"{text} is less than {low:g}")
        if high is not None and value > high:
            self._refuse(f"{text} is more than {high:g}")
        return value

    def _refuse(self, why: str) -> NoReturn:
        raise UsageError(f"invalid value for {self.spelled}: {why}")


def parameters_of(function: Callable[..., object]) -> tuple[Parameter, ...]:
    """The parameters of a command's function that are declared with an `Option`, in their order."""
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        hint, *declared = get_args(hints[name]) or (None,)
        options = [each for each in declared if isinstance(each, Option)]
        if options:
            kind, repeatable = _type_of(hint)
            found.append(Parameter(name, options[0], kind, repeatable, parameter.default))
    return tuple(found)


def _type_of(hint: Any) -> tuple[Any, bool]:
    """The type of one value, and whether there is a list of them."""
    if get_origin(hint) in (Union, UnionType):
        hint = next(each for each in get_args(hint) if each is not NoneType)
    if get_origin(hint) is Literal:
        return get_args(hint), False
    return (get_args(hint)[0], True) if get_origin(hint) is list else (hint, False)


def wants_given(function: Callable[..., object]) -> str | None:
    """The name of the function's parameter that takes a `ParsedNames`; None if it has none."""
    hints = get_type_hints(function)
    return next((name for name, hint in hints.items() if hint is ParsedNames), None)


def read_words(
    words: Sequence[str], parameters: Sequence[Parameter], defaults: Mapping[str, Any], passes_on: bool = False
) -> tuple[dict[str, Any], ParsedNames]:
    """The values of all parameters by field, and what was given.

    Args:
        words: the command line behind the command's name.
        defaults: values of fields from the files of the user.
        passes_on: whether all words behind the first argument, and from the first unknown option on, are arguments.

    Raises:
        UsageError: a word is wrong, or one is missing.
        HelpWanted: `--help` is among the words.
    """
    texts = _Texts(parameters, passes_on)
    texts.take_all(deque(words))
    texts.assign_arguments()
    values = {}
    for each in parameters:
        value = _value_of(each, texts.found, defaults)
        values[each.field] = value if each.option.check is None else each.option.check(value)
    return values, ParsedNames(frozenset(texts.found), tuple(texts.named))


def _value_of(parameter: Parameter, found: Mapping[str, list[str | bool]], defaults: Mapping[str, Any]) -> Any:
    texts: Sequence[Any] | None = found.get(parameter.field)
    variable = parameter.option.variable
    if texts is None and variable and variable in os.environ:
        texts = [os.environ[variable]]
    if texts is None and parameter.field in defaults:
        kept = defaults[parameter.field]
        texts = kept if isinstance(kept, list) else [kept]
    if texts is None:
        if parameter.is_required:
            raise UsageError(f"missing {parameter.title}")
        return parameter.default
    values = [text if parameter.is_flag else parameter.read(str(text)) for text in texts]
    return values if parameter.repeatable else values[-1]


class _Texts:
    """The texts of each parameter.

    Attributes:
        found: by field; True or False for a flag.
        named: the options by all their names.
    """

    def __init__(self, parameters: Sequence[Parameter], passes_on: bool) -> None:
        self.found: dict[str, list[str | bool]] = {}
        self.named = {name: each for each in parameters for name in (*each.option.names, each.option.off) if name}
        self._places = [each for each in parameters if each.is_argument]
        self._passes_on = passes_on
        self._arguments: list[str] = []

    def take_all(self, words: deque[str]) -> None:
        """Takes all words.  Raises UsageError, HelpWanted."""
        while words:
            word = words.popleft()
            if word == "--":
                self._arguments += words
                return
            if word == STDOUT or not word.startswith("-") or not self._take_option(word, words):
                self._arguments.append(word)
                if self._passes_on:
                    self._arguments += words
                    return

    def assign_arguments(self) -> None:
        """Gives each argument its words; a list takes all that are left.  Raises UsageError."""
        left = self._arguments
        for each in self._places:
            taken = len(left) if each.repeatable else 1
            if left:
                self.found[each.field] = [*left[:taken]]
            left = left[taken:]
        if left:
            raise UsageError(f"unexpected argument: {' '.join(left)}")

    def _take_option(self, word: str, words: deque[str]) -> bool:
        """Takes an option or several short ones, and the value; False if a word that is none may be an argument."""
        if word in HELP:
            raise HelpWanted
        if word.startswith("--"):
            name, sign, text = word.partition("=")
            if name not in self.named:
                return self._refuse(name)
            self._put(name, text if sign else None, words)
            return True
        for at, letter in enumerate(word[1:], 2):
            if f"-{letter}" not in self.named:
                return self._refuse(f"-{letter}")
            if not self.named[f"-{letter}"].is_flag:
                self._put(f"-{letter}", word[at:] or None, words)
                return True
            self._put(f"-{letter}", None, words)
        return True

    def _refuse(self, name: str) -> bool:
        if self._passes_on:
            return False
        import difflib

        near = difflib.get_close_matches(name, self.named, n=1)
        raise UsageError(f"no such option: {name}" + (f"; did you mean {near[0]}?" if near else ""))

    def _put(self, name: str, text: str | None, words: deque[str]) -> None:
        option = self.named[name]
        if option.is_flag:
            if text is not None:
                raise UsageError(f"option '{name}' takes no value")
            self.found[option.field] = [name != option.option.off]
            return
        if text is None:
            if not words:
                raise UsageError(f"option '{name}' requires an argument")
            text = words.popleft()
        self.found.setdefault(option.field, []).append(text)
