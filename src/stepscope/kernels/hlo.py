"""Finds the instructions in the serialized program of an XLA module.

    program (HloProto) 1: module 3: computation 2: instruction 1: name, 2: opcode, 7: metadata 1: op type, 2: op name

Everything stays inside the range of the message it belongs to; what is damaged ends that message, not the walk.
"""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled

# Columns of `instructions`' table: where a text lies and how long it is.
NAME_AT, NAME_LEN, OPCODE_AT, OPCODE_LEN, TYPE_AT, TYPE_LEN, OP_AT, OP_LEN, WIDTH = range(9)

_INSTRUCTION, _METADATA = 3, 4  # depths


@compiled(allocates=True)
def instructions(buf, table):  # type: ignore[no-untyped-def]
    """Fills one row for each instruction.

    Args:
        buf: uint8 of shape (bytes,), a serialized HloProto.
        table: int64 of shape (room, WIDTH), zeros.

    Returns:
        how many instructions there are, whether they fit or not.
    """
    way = (1, 3, 2, 7)
    stop = np.zeros(6, np.int64)
    stop[0] = len(buf)
    depth = 0
    count = 0
    at = np.int64(0)
    while depth >= 0:
        if at >= stop[depth]:
            at = stop[depth]
            depth -= 1
            continue
        end = stop[depth]
        # A varint is read three times over in one loop, so that there is no call with an array in it.
        tag = np.uint64(0)
        value = np.uint64(0)
        wire = np.int64(0)
        sound = True
        for part in range(2):
            if part == 1 and wire != 0 and wire != 2:
                at += 8 if wire == 1 else 4
                sound = wire == 1 or wire == 5
                break
            number = np.uint64(0)
            shift = 0
            done = False
            while at < end and shift < 64:
                byte = buf[at]
                at += 1
                number |= np.uint64(byte & 0x7F) << np.uint64(shift)
                shift += 7
                if byte < 0x80:
                    done = True
                    break
            sound = sound and done
            if part == 0:
                tag = number >> np.uint64(3)
                wire = np.int64(number & np.uint64(7))
            else:
                value = number
        if not sound or (wire == 2 and value > np.uint64(end - at)):
            at = end
            continue
        if wire != 2:
            continue
        length = np.int64(value)
        if depth < 4 and tag == way[depth]:
            if depth == 2:
                count += 1
            depth += 1
            stop[depth] = at + length
            continue
        if depth >= _INSTRUCTION and (tag == 1 or tag == 2) and count <= len(table):
            column = np.int64(NAME_AT if depth == _INSTRUCTION else TYPE_AT) + 2 * (np.int64(tag) - 1)
            table[count - 1, column] = at
            table[count - 1, column + 1] = length
        at += length
    return count
