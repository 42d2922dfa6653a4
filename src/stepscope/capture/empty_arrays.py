"""Large matrices of a program that are nearly empty, which a product goes over as if they were not.

No profiler records what arrays hold.  So a part of their memory is read, once, when a capture starts and lists them.
Arrays on a device are left alone: reading them would make the program wait.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from stepscope.capture.handles import move_up

EMPTY = "empty:"  # before the number of a kind of arrays in the facts of a capture
_LARGE = 1 << 18  # bytes: a product with less takes no time worth a change
_MOST = 20  # arrays that are read: 1 ms each, while the program waits
_NEARLY = 50  # of 1000 numbers: with more, a dense product is about as fast
_PIECES, _PIECE = 256, 256  # bytes that are read of each
_WIDTHS = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}


def find_empty(groups: Mapping[tuple[str, tuple[int, ...]], Iterable[Any]]) -> dict[str, str]:
    """`type, sides, numbers of 1000 that are not zero`, by tabs, of the kinds of matrices that are all nearly empty.

    Args:
        groups: arrays by their type and shape.
    """
    found, left = list[str](), _MOST
    for (type_, shape), arrays in groups.items():
        width = _WIDTHS.get(type_, 0)
        size = shape[0] * shape[1] * width if len(shape) == 2 else 0
        if size < _LARGE:
            continue
        shares = list[int]()
        for array in arrays:
            left -= 1
            shares.append(_read_share(array, size, width) if left >= 0 else 1000)
            if shares[-1] > _NEARLY:
                break
        if shares and max(shares) <= _NEARLY:
            found.append(f"{type_}\t{shape[0]},{shape[1]}\t{max(shares)}")
    return {f"{EMPTY}{number}": text for number, text in enumerate(found)}


def _read_share(array: Any, size: int, width: int) -> int:
    """How many of 1000 numbers in the memory of an array are not zero; 1000 where it is not to be read."""
    start = 0
    with suppress(Exception):  # another release names it otherwise
        start = _address(array, size)
    if not start:
        return 1000
    each = (size - _PIECE) // _PIECES // width * width
    read = _read_memory([start + number * each for number in range(_PIECES)])
    if not read:
        return 1000
    zero = bytes(width)
    zeros = sum(read[at : at + width] == zero for at in range(0, len(read), width))
    return 1000 - 1000 * zeros * width // len(read)


def _read_memory(places: Iterable[int]) -> bytes:
    """Pieces of this process' memory; nothing if the system does not allow it, or if one is there no longer: another
    thread of the program may free what an array has held, and whoever looked there would end by a signal."""
    try:
        memory = move_up(os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC))  # only Linux has it
        try:
            return b"".join(os.pread(memory, _PIECE, place) for place in places)
        finally:
            os.close(memory)
    except OSError:
        return b""


def _address(array: Any, size: int) -> int:
    """Where an array's numbers begin in the host's memory; 0 where they are elsewhere or not one after another."""
    if type(array).__module__.startswith("torch"):
        whole = array.device.type == "cpu" and str(array.layout) == "torch.strided" and array.is_contiguous()
        return int(array.data_ptr()) if whole and array.untyped_storage().nbytes() >= size else 0
    if hasattr(array, "unsafe_buffer_pointer"):
        (device, *others) = array.devices()
        return int(array.unsafe_buffer_pointer()) if device.platform == "cpu" and not others and array.is_ready() else 0
    return int(array._numpy_internal().ctypes.data) if "CPU" in array.device else 0
