"""A byte, or eight at once, of an array: what numba's own indexing does more slowly, and what the bytes mean."""
# mypy: disallow-untyped-decorators=False, disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# What only other compiled functions call is part of their cached code.
inner = njit(nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)

NO = np.int64(0)  # a literal 0 would make numba compile the called function once more
SPACE, QUOTE, COMMA, COLON, BACKSLASH = 0x20, 0x22, 0x2C, 0x3A, 0x5C
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = 0x7B, 0x7D, 0x5B, 0x5D
MINUS, PLUS, DOT, ZERO, NINE = 0x2D, 0x2B, 0x2E, 0x30, 0x39


@intrinsic
def word_at(_context, buf, at):
    """The eight bytes of a uint8 array from `at` on as one number, by one load and without a check of the bounds."""

    def load(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(buf, types.int64), load


@intrinsic
def byte_at(_context, buf, at):
    """A byte of a uint8 array, which numba's own indexing finds only after a look for negative numbers."""

    def load(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load(builder.gep(array.data, [arguments[1]]))

    return types.uint8(buf, types.int64), load


@intrinsic
def put_byte(_context, buf, at, byte):
    """Stores a byte, for the same reason."""

    def store(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        builder.store(arguments[2], builder.gep(array.data, [arguments[1]]))
        return context.get_dummy_value()

    return types.none(buf, types.int64, types.uint8), store


@intrinsic
def zeros_below(_context, word):
    """How many bits of a number that is not 0 stand below the lowest one that is set.

    Of a word it tells where the first byte with some property is: all that numba compiles for is little-endian.
    """

    def count(_, builder, __, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(word), count
