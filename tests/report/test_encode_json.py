"""A report as JSON: written without a copy, and the same as of its copy with finite numbers."""

from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

from stepscope.report.base import encode_json, make_finite


class Said(str):
    __slots__ = ("more",)


class Pair(NamedTuple):
    first: float
    second: str


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": float("nan"), "b": [float("inf"), -float("inf"), 1.5]}, b'{"a":null,"b":[null,null,1.5]}'),
        ({"rows": ({"n": 1, "at": None},)}, b'{"rows":[{"n":1,"at":null}]}'),
        (Said("said"), b'"said"'),
        (np.float64("nan"), b"null"),
        (Pair(float("nan"), "x"), b'[null,"x"]'),
        ({"path": "a\udcff", "n": float("nan")}, b'{"path":"a?","n":null}'),
        (Said("a\udcff"), b'"a?"'),
        ("é", '"é"'.encode()),
    ],
)
def test_json_of_a_value(value: Any, written: bytes) -> None:
    assert encode_json(value) == written == msgspec.json.encode(make_finite(value))


def test_what_is_no_json_is_an_error() -> None:
    with pytest.raises(TypeError, match="holds no int64"):
        encode_json({"n": np.int64(1)})
