"""Where the checkout and the shared profiles lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HELPERS = Path(__file__).resolve().parent


def shared_folder() -> Path:
    """The folder with real profiles that are not part of the project."""
    return Path(os.environ.get("STEPSCOPE_SHARED") or ROOT.parent / "shared")


def folder_of_run(factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this test run see, and no other run."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


# The traces that PyTorch wrote among the private profiles, below their folder.
TORCH_TRACES = (
    "torch-v100-resnet50-workers0/worker0.1623143089861.pt.trace.json.gz",
    "torch-v100-resnet50-workers4/worker0.1623212756351.pt.trace.json.gz",
    "torch-nccl/nccl.pt.trace.json.gz",
    "torch-multirank/rank0.pt.trace.json.gz",
    "torch-multirank/rank1.pt.trace.json.gz",
    "torch-h100-owlv2/owlv2.pt.trace.json.gz",
    "torch-h100-qwen/qwen.pt.trace.json.gz",
    "torch-mi300-resnet/resnet_act_checkpoint.pt.trace.json.gz",
    "torch-sglang-qwen3/sglang_prefilldecode.pt.trace.json.gz",
)
