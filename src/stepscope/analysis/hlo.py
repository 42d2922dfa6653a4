"""What the XLA programs in a trace say of their instructions: which op of the framework each was made from."""

from __future__ import annotations

import re

import numpy as np

from stepscope import kernels
from stepscope.model import HostTrace, PlaneKind, StatTag, stat_names

_PROGRAM_ID = re.compile(r"(?P<module>.*)\((?P<id>-?\d+)\)")
_BYTES_AN_INSTRUCTION = 32  # at least; leaves room to spare


class Programs:
    """Looks up the framework op of an XLA instruction.

    Args:
        protos: for each module's name, as in `jit_step(4)`, its serialized program.
    """

    def __init__(self, protos: dict[str, bytes]) -> None:
        self._protos: dict[str | int, bytes] = {}
        self._ops: dict[bytes, dict[str, str]] = {}
        for name, proto in protos.items():
            found = _PROGRAM_ID.fullmatch(name)
            self._protos[found["module"] if found else name] = proto
            if found:
                self._protos[int(found["id"])] = proto

    def __bool__(self) -> bool:
        return bool(self._protos)

    def framework_op(self, program_id: int, module: str, instruction: str) -> str:
        """The op as `name:type`, with an empty type where the program tells none; empty if it does not know the op."""
        proto = self._protos.get(program_id) or self._protos.get(module)
        if proto is None:
            return ""
        if proto not in self._ops:
            self._ops[proto] = _ops(proto)
        return self._ops[proto].get(instruction, "")


def programs(trace: HostTrace) -> Programs:
    """The programs of a trace, decoded when first asked for."""
    return trace.derived("programs", _programs)


def _programs(trace: HostTrace) -> Programs:
    stats, types = trace.type_stats, trace.event_types
    wanted = [row for row in map(trace.strings.find, stat_names.HLO_PROTO) if row > 0]
    rows = np.flatnonzero(np.isin(stats.name, wanted) & (stats.tag == StatTag.BYTES))
    owners = np.searchsorted(stats.offsets, rows, side="right") - 1
    metadata = trace.planes.kind[types.plane[owners]] == PlaneKind.METADATA
    pairs = zip(owners[metadata].tolist(), stats.value[rows[metadata]].tolist(), strict=True)
    return Programs({trace.strings[types.name[owner]]: trace.strings.raw(value) for owner, value in pairs})


def _ops(proto: bytes) -> dict[str, str]:
    from_hlo = kernels.hlo
    buf = np.frombuffer(proto, np.uint8)
    table = np.zeros((len(proto) // _BYTES_AN_INSTRUCTION + 16, from_hlo.WIDTH), np.int64)
    count = from_hlo.instructions(buf, table)
    if count > len(table):
        table = np.zeros((count, from_hlo.WIDTH), np.int64)
        from_hlo.instructions(buf, table)
    found = {}
    for name, name_len, _, _, kind, kind_len, op, op_len in table[:count].tolist():
        if op_len:
            parts = (proto[op : op + op_len], proto[kind : kind + kind_len])
            text = b":".join(parts).decode("utf-8", "replace")
            found[proto[name : name + name_len].decode("utf-8", "replace")] = text
    return found
