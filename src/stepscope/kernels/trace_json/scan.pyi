from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

MORE: int
CLOSED: int
STOPPED: int
MALFORMED: int
HAS_TIME: int
HAS_DURATION: int
NEGATIVE: int
HAS_PID: int
HAS_TID: int
HAS_FLOW: int
LOCAL_ID: int

class Columns(TypedDict):
    phase: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    cat: NDArray[np.int32]
    name: NDArray[np.int32]
    pid: NDArray[np.int32]
    tid: NDArray[np.int32]
    us: NDArray[np.int64]
    frac_ps: NDArray[np.int32]
    duration_us: NDArray[np.int64]
    duration_frac_ps: NDArray[np.int32]
    flow: NDArray[np.int64]
    stat_end: NDArray[np.int64]
    stat_name: NDArray[np.int32]
    stat_tag: NDArray[np.uint8]
    stat_value: NDArray[np.int64]

class Scanner:
    @property
    def at(self) -> int: ...
    @property
    def recovering(self) -> bool: ...
    @property
    def damaged(self) -> int: ...
    @property
    def damaged_at(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def texts(self) -> int: ...
    def scan(self, text: NDArray[np.uint8], at: int, end: int, stop: int) -> int: ...
    def absorb(self, part: Scanner) -> None: ...
    def forget(self) -> None: ...
    def take(self) -> Columns: ...
    def add_text(self, text: NDArray[np.uint8]) -> int: ...
    def text(self, text: int) -> bytes: ...
    def escaped(self) -> list[int]: ...
    def table(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...

def skip_value(text: NDArray[np.uint8], at: int, end: int) -> int: ...
def skip_space(text: NDArray[np.uint8], at: int, end: int, commas: bool) -> int: ...
def find_event(text: NDArray[np.uint8], at: int, end: int) -> int: ...
