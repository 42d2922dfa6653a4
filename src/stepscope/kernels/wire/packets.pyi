from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stepscope.kernels.trace_json.scan import Scanner

U8 = NDArray[np.uint8]

DONE: int
COMPRESSED: int
BROKEN: int
CUT: int
UNKNOWN_TRACK: int
PROCESS_TRACK: int
THREAD_TRACK: int
NAMED_TRACK: int
COUNTER_TRACK: int
QUEUE_TRACK: int
GPU_COUNTER_TRACK: int
BY_DEFLATE: int
BY_ZSTD: int

class PacketDecoder:
    at: int
    inner_begin: int
    inner_end: int
    inner_method: int
    packets: int
    damaged: int
    damaged_at: int
    skipped: int
    lost: int
    unnamed: int
    unknown_clocks: int
    realtime_ns: int
    def __init__(self, columns: Scanner, seed: int, kept_texts: Sequence[bytes]) -> None: ...
    def decode(self, data: U8, begin: int) -> int: ...
    def note_damage(self, at: int) -> None: ...
    def finish(self) -> None: ...
    def tracks(self) -> list[tuple[int, int, int, int, int, int]]: ...

def find_packet(data: U8, begin: int) -> int: ...
