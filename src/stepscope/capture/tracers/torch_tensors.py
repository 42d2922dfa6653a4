"""Which tensors the ops of a capture take, from the addresses that PyTorch's profiler keeps of their operands.

An address says who a tensor is only while no other can get it.  So the tensors that Python holds are looked up before a
capture, with a weak reference to the storage of each: where that is alive at the end, its address belonged to it for
the whole capture.  All other tensors come and go, and their addresses may be used again.

PyTorch counts its own writes alone.  Memory that it shares with others, as with the array of `torch.from_numpy` that a
loader fills again and again, or with another process, is read before and after.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from contextlib import suppress
from typing import Any, NamedTuple

from stepscope.capture.kept_arrays import unseen
from stepscope.kernels.stacks import list_objects

_MOST_TENSORS = 20_000  # that are looked up: 2 us each, while the program waits
_MOST_EVENTS = 500_000  # in a capture: making the roots of the tree of more takes half a second
_MOST_OPS = 30_000  # of which operands are read, from the first one: 6 to 20 us each, while the program waits
_PATIENCE_S = 0.2  # of the processor
_OPS = "aten::"
_WHOLE = 1 << 20  # bytes of shared memory that are read in full, 0.5 ms; of more _PIECES are, of _PIECE bytes each
_PIECES, _PIECE = 256, 256
_MOST_SHARED = 100  # tensors whose memory is shared that are looked up


class _Lasting(NamedTuple):
    """A tensor that was there before a capture: a weak reference to its storage, how often it had been written, and a
    number for what its memory held if others may write there, too: None if not."""

    storage: Any
    version: int
    shared: int | None


Address = tuple[int, int]  # of a tensor, and of the numbers in its storage


class Tensors:
    """The tensors that Python holds when a capture starts; keeps none of them alive."""

    def __init__(self) -> None:
        self._lasting: dict[Address, _Lasting] = {}
        reference = getattr(sys.modules.get("torch.multiprocessing.reductions"), "StorageWeakRef", None)
        if reference is None:
            return
        with unseen():
            self._look_up(reference)

    def _look_up(self, reference: Any) -> None:
        shared = 0
        for tensor in _held_tensors()[:_MOST_TENSORS]:
            with suppress(RuntimeError, NotImplementedError):  # sparse ones have no storage; in inference no version
                storage = tensor.untyped_storage()
                address = int(tensor._cdata), int(storage.data_ptr())
                is_shared = _is_shared(storage)
                shared += is_shared
                if address[1] and (not is_shared or shared <= _MOST_SHARED):
                    self._lasting[address] = _Lasting(reference(storage), int(tensor._version), _read_shared(storage))

    def describe(self, native: Any, events: int | None) -> bytes | None:
        """The operands of the outermost ops of a capture as JSON: `ids` are the "External id" of ops, `operands` the
        texts of these; None where this torch does not keep them.

        A text has a word for each operand that is a tensor: `c` and a number for one that lasts and is never written,
        `w` for one that lasts, `u` for one that is also written in a way that no op shows, `t` for any other: then the
        numbers of its two addresses, which another tensor may have before or after.

        Args:
            native: PyTorch's profiler, stopped; events: about how many events it holds.
        """
        results = getattr(getattr(native, "profiler", None), "kineto_results", None)
        tree = getattr(results, "experimental_event_tree", None)
        if tree is None or (events or 0) > _MOST_EVENTS:
            return None
        ids, names, operands = _read_ops(tree())
        if not any(operands):
            return None
        return json.dumps({"ids": ids, "operands": self._texts(names, operands)}, separators=(",", ":")).encode()

    def _texts(self, names: list[str], operands: list[list[Address]]) -> list[str]:
        kinds = self._kinds(names, operands)
        numbers: dict[int, int] = {}
        words: dict[Address, str] = {}
        texts = []
        for each in operands:
            for address in each:
                if address not in words:
                    tensor, storage = (numbers.setdefault(part, len(numbers)) for part in address)
                    words[address] = f"{kinds.get(address, 't')}{tensor}.{storage}"
            texts.append(" ".join(words[address] for address in each))
        return texts

    def _kinds(self, names: list[str], operands: list[list[Address]]) -> dict[Address, str]:
        used = {address for each in operands for address in each if address in self._lasting}
        used = {address for address in used if not self._lasting[address].storage.expired()}
        written: dict[int, int] = {}
        for name, each in zip(names, operands, strict=True):
            if name.endswith("_") or not name.startswith(_OPS):
                for _, storage in each:
                    written[storage] = written.get(storage, 0) + 1
        version: dict[Address, tuple[int, int | None]] = {}
        tensors = {tensor for tensor, _ in used}
        with unseen():
            for tensor in _held_tensors() if used else ():
                if tensor._cdata in tensors:
                    with suppress(RuntimeError, NotImplementedError):
                        storage = tensor.untyped_storage()
                        now = int(tensor._version), _read_shared(storage)
                        version[int(tensor._cdata), int(storage.data_ptr())] = now
        kinds = {}
        for address in used & version.keys():
            before, (writes, shared) = self._lasting[address], version[address]
            seen = written.get(address[1], 0)
            is_hidden = not seen and (writes != before.version or shared != before.shared)
            kinds[address] = "w" if seen else "u" if is_hidden else "c"
        return kinds


def _held_tensors() -> list[Any]:
    """The tensors that Python's collector knows and that have been there for some time.

    Objects of the youngest generation may be unfinished.
    """
    torch = sys.modules["torch"]
    return [each for age in (2, 1) for each in list_objects((torch.Tensor, torch.nn.Parameter), age)]


def _is_shared(storage: Any) -> bool:
    """Whether others may know the memory of a storage: PyTorch does not move such memory."""
    return storage.device.type == "cpu" and not storage.resizable()


def _read_shared(storage: Any) -> int | None:
    """A number for what shared memory holds; None where it is PyTorch's alone."""
    if not _is_shared(storage):
        return None
    start, size = int(storage.data_ptr()), int(storage.nbytes())
    if size <= _WHOLE:
        return hash(ctypes.string_at(start, size))
    places = range(start, start + size - _PIECE, size // _PIECES)
    return hash(b"".join(ctypes.string_at(place, _PIECE) for place in places))


def _read_ops(roots: list[Any]) -> tuple[list[int], list[str], list[list[Address]]]:
    """The id, the name and the operands of the outermost ops, in order of time on each thread."""
    ids: list[int] = []
    names: list[str] = []
    operands: list[list[Address]] = []
    end = time.thread_time() + _PATIENCE_S
    left = roots[::-1]
    while left and len(ids) < _MOST_OPS and time.thread_time() < end:
        event = left.pop()
        name = event.name
        is_op = name.startswith(_OPS)
        addresses: list[Address] = []
        for operand in getattr(event.extra_fields, "inputs", ()):
            for each in operand if isinstance(operand, list) else (operand,):
                tensor = getattr(each, "impl_ptr", None)
                if tensor is not None:
                    addresses.append((tensor, each.storage_data_ptr or 0))
        if is_op or addresses:
            ids.append(event.correlation_id)
            names.append(name)
            operands.append(addresses)
        if not is_op:
            left.extend(reversed(event.children))
    return ids, names, operands
