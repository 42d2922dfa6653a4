"""What names are drawn as."""

from __future__ import annotations

import re

import pytest

from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.vocabulary.categories import CATEGORY_RULES


def category_of(name: str, where: str) -> str | None:
    """What the page makes of the rules: the first that is found in the name, in lower case."""
    found = (rule for rule in CATEGORY_RULES if rule.where in ("", where) and re.search(rule.pattern, name.lower()))
    return next((rule.category for rule in found), None)


@pytest.mark.parametrize(
    ("name", "where", "category"),
    [
        ("cudnn_convolution", "device", None),
        ("copy host to device", "device", "device_to_device"),
        ("copy device to host", "device", "device_to_device"),
        ("Memcpy HtoD (Pageable -> Device)", "device", "device_to_device"),
        ("copy-done", "device", "device_to_device"),
        ("aten::copy_", "host", "device_to_device"),
        ("ncclKernel_AllReduce_RING", "device", "device_collectives"),
        ("all-reduce", "device", "device_collectives"),
        ("record_param_comms", "device", "device_collectives"),
        ("void tensorflow::functor::FillPhiloxRandomKernelLaunch<...>", "device", None),
        ("cudaLaunchKernel", "host", "kernel_launch"),
        ("aten::add_", "host", None),
        ("Iterator::Prefetch", "host", "input"),
        ("input_transpose_fusion", "device", None),
        ("backend_compile", "host", "compilation"),
        ("idle", "device", "other"),
    ],
)
def test_a_name_is_drawn_as_its_category(name: str, where: str, category: str | None) -> None:
    assert category_of(name, where) == category


def test_every_rule_is_of_a_category_of_the_breakdown_and_can_be_read_in_javascript() -> None:
    assert {rule.category for rule in CATEGORY_RULES} <= set(CATEGORIES)
    for rule in CATEGORY_RULES:
        assert re.search(r"\(\?[^:]|\\[AZ]", rule.pattern) is None
