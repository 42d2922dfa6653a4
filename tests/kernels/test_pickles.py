"""Pickles that claim more than they hold are known before Python makes room for it."""

from __future__ import annotations

import pickle

import pytest

from stepscope.kernels.pickles import claims_more_than_it_holds

NESTED = {"a": [1, 2.5, "é", None, True, (1, 2), b"x" * 300, 10**30, -5], "b" * 300: {"c": "p999\nr" * 50}}
NESTED["self"] = [NESTED["a"], NESTED["a"], *range(70_000)]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_python_writes_claims_no_more(protocol: int) -> None:
    whole = pickle.dumps(NESTED, protocol)

    assert not claims_more_than_it_holds(whole)
    assert not claims_more_than_it_holds(pickle.dumps([str(number) for number in range(300)], protocol))


@pytest.mark.parametrize(
    ("data", "claims"),
    [
        (b"\x80\x04Nr\xff\xff\xff\x0f.", True),  # place 268,435,455 of the memory
        (b"Np999999999\n.", True),
        (b"Np99999999999999999999999999\n.", True),
        (b"Np 1_000\n.", True),
        (b"Np3\n.", False),
        (b"Nq\xff.", False),
        (b"Np255\n.", False),
        (b"Np256\n.", True),
        (b"\x80\x05\x96\x00\x00\x00\x80\x00\x00\x00\x00N.", True),  # two gigabytes of bytes
        (b"\x80\x04\x8b\xff\xff\xff\x7f.", True),
        (b"\x80\x04\x8cx.", True),  # a text of 120 bytes
        (b"\x80\x04\x8c\x05r\xff\xff\xff\xff.", False),  # the same within a text
        (b"Vp999999\n.", False),
        (b"N.r\xff\xff\xff\x0f", False),  # after the end
        (b"\xffr\xff\xff\xff\x0f", False),  # after what is no opcode
        (b"Nr\xff\xff", False),
        (b"cp999999\np999999\n.", False),
        (b"Np", False),
        (b"", False),
    ],
)
def test_a_claim_is_found_wherever_it_stands(data: bytes, claims: bool) -> None:
    assert claims_more_than_it_holds(data) is claims
