import threading
from collections.abc import Callable, Container, Iterable
from types import CodeType, FrameType
from typing import Any

from stepscope.kernels.small_files import Meter

Frame = tuple[CodeType, int]

def current_frames() -> dict[int, FrameType]: ...
def list_frames() -> list[FrameType]: ...

class Sampling:
    def __init__(
        self,
        log: StackLog,
        clock: Callable[[], int],
        named: dict[int, threading.Thread],
        own: Container[int],
        meters: dict[int, Meter],
        adapt: Callable[[int], object],
        interval_s: float,
        share: float,
        balance_s: float,
        most_wait_s: float,
        used: Callable[[], int],
    ) -> None: ...
    def bind(self, slow: Callable[[bool], float | None]) -> Callable[[bool], float | None]: ...
    def sample(self) -> float: ...

class StackLog:
    def __init__(
        self, most: int, skipped: str, kept: str = ..., last: str = ..., libraries: tuple[str, ...] = ...
    ) -> None: ...
    def __len__(self) -> int: ...
    def read(
        self, clock: Callable[[], int], named: dict[int, threading.Thread], own: Container[int]
    ) -> tuple[int, int]: ...
    def take(
        self,
    ) -> list[tuple[int, list[tuple[tuple[int, int, str], list[Frame], Frame, list[Frame]]]]]: ...

def read_stack(thread: int | None, most: int = ...) -> list[tuple[CodeType, int]]: ...
def list_objects(types: Iterable[type], generation: int | None = ..., most: int = ...) -> list[Any]: ...
def file_of(code: CodeType) -> str: ...
