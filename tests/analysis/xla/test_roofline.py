"""The tool `roofline`, what ops of frameworks cost, and the table of devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import oracle
import pytest
from reporting import reporter
from test_hlo_stats import FLOPS, H100, PROGRAMS, carried
from xla_traces import Ran, trace_of

import stepscope
from stepscope.analysis.trace.device_facts import DeviceFacts
from stepscope.analysis.xla import peaks as device_table
from stepscope.analysis.xla import roofline_tool
from stepscope.analysis.xla.framework_costs import Convolutions, Cost, tensorflow_cost, torch_cost
from stepscope.analysis.xla.op_table import UsedOp, describe_above_peaks, rates_of
from stepscope.analysis.xla.ops import XlaOp
from stepscope.analysis.xla.peaks import Peaks, peaks_of, table
from stepscope.errors import UsageError

roofline = reporter(roofline_tool)


def torch(op: str, dims: Any, types: list[str], concrete: list[str] | None = None) -> Cost:
    return torch_cost(f"aten::{op}", json.dumps(dims), json.dumps(types), json.dumps(concrete) if concrete else "")


# -- what ops cost ---------------------------------------------------------------------------------------------------

BF16 = "c10::BFloat16"


def test_matrix_products_of_pytorch() -> None:
    assert torch("mm", [[64, 128], [128, 32]], [BF16, BF16]) == Cost(
        2 * 64 * 128 * 32, 2 * (64 * 128 + 128 * 32 + 64 * 32), "bf16", True
    )
    assert torch("addmm", [[32], [64, 128], [128, 32], [], []], ["float"] * 3).flops == 2 * 64 * 128 * 32
    assert torch("bmm", [[8, 64, 128], [8, 128, 32]], ["float"] * 2).flops == 8 * 2 * 64 * 128 * 32
    assert torch("linear", [[4, 64, 128], [32, 128]], ["float"] * 2).flops == 2 * 4 * 64 * 128 * 32


def test_attention_of_pytorch() -> None:
    forward = torch("_flash_attention_forward", [[2, 512, 16, 64]] * 3, [BF16] * 3)
    backward = torch("_flash_attention_backward", [[2, 512, 16, 64]] * 4, [BF16] * 4)
    other = torch("_scaled_dot_product_flash_attention", [[2, 16, 512, 64]] * 3, [BF16] * 3)

    assert forward.flops == 4 * 2 * 16 * 512 * 512 * 64 == other.flops
    assert backward.flops == 2.5 * forward.flops


def test_convolutions_of_pytorch() -> None:
    image, kernel, out = [10, 64, 56, 56], [128, 64, 3, 3], 10 * 128 * 28 * 28
    one = 2 * out * 64 * 9
    general = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
    miopen = ["", "", "", "[1, 1]", "[2, 2]", "[1, 1]", "1", "True", "True"]

    assert torch("convolution", [image, kernel, [], [], [], [], [], [], []], ["float"] * 2, general).flops == one
    assert torch("miopen_convolution", [image, kernel, []], ["float"] * 2, miopen).flops == one
    gradients = [[10, 128, 28, 28], image, kernel]
    assert torch("convolution_backward", gradients, ["float"] * 3).flops == 2 * one
    only_one = ["", "", "", "[0]", "[True, False, False]"]
    assert torch("convolution_backward", gradients, ["float"] * 3, only_one).flops == one


def test_work_element_by_element() -> None:
    assert torch("mul", [[16, 1, 8], [4, 8]], ["float", "float"]) == Cost(512, 4 * (128 + 32 + 512), "f32", False)
    assert torch("gt", [[8], []], ["float", "Scalar"]) == Cost(8, 4 * 8 + 8, "f32", False)
    assert torch("copy_", [[16, 8], [16, 8], []], ["float", BF16, "Scalar"]).bytes == 128 * 6


def test_softmax_of_pytorch() -> None:
    assert torch("_softmax", [[4, 8], [], []], ["float", "Scalar", "Scalar"]) == Cost(5 * 32, 2 * 4 * 32, "f32", False)
    assert torch("_softmax_backward_data", [[4, 8], [4, 8], [], []], ["float"] * 2).bytes == 3 * 4 * 32


def test_norms_and_sums_of_pytorch() -> None:
    assert torch("native_layer_norm", [[4, 8], [], [8], [8]], ["float"] * 4) == Cost(7 * 32, 2 * 4 * 32, "f32", False)
    assert torch("cudnn_batch_norm_backward", [[2, 4, 3, 3]] * 2, ["float"] * 2).bytes == 3 * 4 * 72
    assert torch("mean", [[4, 8], []], ["float"]) == Cost(32, 4 * 32, "f32", False)


def test_a_convolution_without_strides_is_the_one_whose_gradient_is_in_the_trace() -> None:
    image, gradient, kernel = [2, 8, 4, 4], [2, 16, 2, 2], [16, 8, 3, 3]
    known = Convolutions([("aten::cudnn_convolution_backward", json.dumps([image, gradient, kernel, []]))])
    flops, sizes = 2 * 2 * 16 * 2 * 2 * 8 * 9, 2 * 8 * 16 + 2 * 16 * 4 + 16 * 8 * 9

    def cost(op: str, *dims: list[int], known: Convolutions = known) -> Cost:
        return torch_cost(f"aten::{op}", json.dumps(dims), json.dumps(["float"] * len(dims)), "", known)

    assert cost("cudnn_convolution", image, kernel) == Cost(flops, 4 * sizes, "f32", True)
    assert cost("cudnn_convolution_backward_input", [], gradient, kernel) == Cost(flops, 4 * sizes, "f32", True)
    assert cost("cudnn_convolution_backward_weight", [], gradient, image) == Cost(flops, 4 * sizes, "f32", True)
    assert cost("cudnn_convolution", image, kernel, known=Convolutions()).flops is None


def test_the_tensor_that_a_result_is_written_to_is_not_read() -> None:
    """`out=` of clamp_min(x, 0), relu(x), add(x, y) and addcmul(x, y, z); in-place ops read what they write."""
    a, n = [16, 8], 4 * 16 * 8
    for op, dims, types, arrays in (
        ("clamp_min", [a, [], a], ["float", "Scalar", "float"], 2),
        ("relu", [a, a], ["float"] * 2, 2),
        ("add", [a, a, [], a], ["float", "float", "Scalar", "float"], 3),
        ("addcmul", [a, a, a, [], a], ["float", "float", "float", "Scalar", "float"], 4),
        ("add_", [a, a, []], ["float", "float", "Scalar"], 3),
    ):
        assert torch(op, dims, types).bytes == arrays * n


def test_ops_of_tensorflow_by_the_shapes_in_their_annotation() -> None:
    assert tensorflow_cost("MatMul", "(half[64,128];half[128,32])").flops == 2 * 64 * 128 * 32
    assert tensorflow_cost("MatMul", "(half[128,64];half[32,128])").flops == 2 * 64 * 128 * 32
    assert tensorflow_cost("MatMul", "(half[64,128];half[64,128])").flops is None  # either size may be summed over
    assert tensorflow_cost("Mul", "(half[4,8];half[])") == Cost(32, 128, "f16", False)


@pytest.mark.parametrize(
    ("dims", "types", "concrete"),
    [
        ("", "", ""),
        ("[[1,2]", "[]", ""),
        ("[[1,2],[3,4]]", "[]", ""),
        ("{}", "{}", "{}"),
        ("[[-1],[-1]]", '["float"]', ""),
    ],
)
def test_what_cannot_be_counted_is_unknown(dims: str, types: str, concrete: str) -> None:
    for op in ("mm", "convolution", "convolution_backward", "_flash_attention_forward", "mul", "copy_", "mystery"):
        cost = torch_cost(f"aten::{op}", dims, types, concrete)
        assert cost.flops is None or cost.flops >= 0


# -- roofs -----------------------------------------------------------------------------------------------------------


def test_rates_and_the_limit() -> None:
    compute = rates_of(flops=1e12, nbytes=1e9, time_ps=2e12, peak_flops=1e12, peak_bytes=1e10)
    memory = rates_of(flops=1e9, nbytes=1e10, time_ps=2e12, peak_flops=1e12, peak_bytes=1e10)

    assert (compute.bound_by, compute.compute_percent, compute.memory_percent) == ("compute", 50, 5)
    assert compute.least_ps == pytest.approx(1e12)
    assert (memory.bound_by, memory.intensity, memory.least_ps) == ("memory", 0.1, pytest.approx(1e12))
    assert rates_of(None, 1e9, 1e12, 1e12, 1e10).bound_by is None


def test_an_op_and_its_program_against_the_roofs() -> None:
    report = roofline(trace_of(PROGRAMS, [Ran("Stream #1(Kernel)", "gemm", 0, 8, carried("dot.1"))], facts=H100))
    program, op = report.rows
    nbytes = 2 * (64 * 128 * 2) + 4 * 64 * 64

    assert (program["kind"], program["name"], program["occurrences"]) == ("program", "jit_f(1)", 1)
    assert (op["kind"], op["name"], op["flops"], op["bytes"]) == ("op", "dot.1", FLOPS, nbytes)
    assert op["roof_gflop_per_s"] == pytest.approx(FLOPS / nbytes * 3350)
    assert op["efficiency_percent"] == pytest.approx(100 * nbytes / 8e-6 / 3350e9)
    roofs = {(row["kind"], row["name"]): row for row in report.roofs}
    assert roofs["compute", "bf16 matrix"]["ridge_flop_per_byte"] == pytest.approx(989.4e12 / 3350e9)
    assert roofs["memory", "memory"]["gb_per_s"] == 3350


def test_intensities_are_xprofs(corpus: Path) -> None:
    path = next((corpus / "jax-mi300x-attention").rglob("*.xplane.pb"))
    theirs = {row["operation"]: row for row in oracle.roofline(path).rows if row["step"] == "Total"}
    rows = stepscope.load(path).report("roofline").to_dict()["rows"]
    products = [row for row in rows if row["category"] == "custom fusion"]

    assert len(products) == 5
    for row in products:
        their = theirs[row["name"]]
        assert row["flop_per_byte"] == pytest.approx(their["operational_intensity"], rel=0.01)
        assert row["gflop_per_s"] == pytest.approx(their["measured_flop_rate"], rel=0.01)
        assert row["gib_per_s"] == pytest.approx(their["hbm_bw"], rel=0.01)
        assert row["compute_percent"] == pytest.approx(100 * their["compute_efficiency"], rel=0.01)


@pytest.mark.parametrize(
    ("session", "most"),
    # cuDNN's Winograd convolutions in single precision do with fewer operations than a convolution has.
    [("torch-h100-qwen", 100), ("torch-mi300-resnet", 100), ("torch-v100-resnet50-workers0", 225)],
)
def test_no_op_of_pytorch_beats_its_device(corpus: Path, session: str, most: float) -> None:
    report = stepscope.load(corpus / session).report("roofline").to_dict()
    shares = [row["compute_percent"] for row in report["rows"] if row["compute_percent"]]

    assert len(shares) > 5
    assert max(shares) < most
    assert 0 < report["steps"]["mfu_percent"] < 100


def test_a_device_that_only_copies_is_no_part_of_the_peak() -> None:
    copied = Ran(
        "stream 7", "MemcpyD2D", 20, 5, {"memcpy_details": "kind_src:device kind_dst:device size:64"}, place="gpu 1"
    )
    trace = trace_of(PROGRAMS, [Ran("stream 1", "dot_1", 0, 10, carried("dot.1")), copied], facts=H100)

    assert [(row["device"], row["count"]) for row in roofline(trace).devices] == [("NVIDIA H100 SXM", 1)]


def test_what_is_above_a_peak_is_said_with_its_reason() -> None:
    """In 1 us an op moves 1 or 2 MB where the memory moves 1 MB; a copy that goes on beside others has no rate."""
    peaks = Peaks("drawn", {}, {}, memory=1e12)

    def ran(name: str, category: str, nbytes: float) -> UsedOp:
        costs = (0.0, nbytes, 0.0, "bf16", False, "", "", [], "", False, False, [])
        return UsedOp(XlaOp(-1, name, category, 1, 10**6, 10**6, *costs), "", peaks)

    assert describe_above_peaks([ran("full", "fusion", 1e6), ran("copy", "copy-start", 1e9)]) == []
    [said] = describe_above_peaks([ran("full", "fusion", 1e6), ran("cached", "fusion", 2e6)])
    assert said.startswith("one op is above a peak of the device, `cached` at 200 %: ")
    assert said.endswith("bytes that a cache holds")


@pytest.mark.parametrize("session", ["jax-mi300x-attention", "jax-mi300x-conv", "tpu-inference"])
def test_steps_use_as_much_of_the_hardware_as_in_hlo_stats(corpus: Path, session: str) -> None:
    profile = stepscope.load(corpus / session)
    used = [profile.report(tool).to_dict()["steps"] for tool in ("roofline", "hlo-stats")]

    assert used[0]["mfu_percent"] > 0
    # Roofline lists the copies that no program asked for as well, so the costed share is one of more time.
    for figure in used[0].keys() - {"costed_percent"}:
        assert used[0][figure] == used[1][figure]


def test_a_trace_without_device_work_says_what_is_needed() -> None:
    report = roofline(trace_of({}, [Ran("main", "op", 0, 3)], device="host"))

    assert report.rows == ()
    assert "record_shapes=True" in report.warnings[0]


# -- the table of devices --------------------------------------------------------------------------------------------


def facts(name: str = "", **more: Any) -> DeviceFacts:
    known = {"vendor": "", "capability": "", "cores": None, "peak_flops": None, "peak_bytes": None, "count": 1}
    return DeviceFacts("GPU", name, **(known | more))


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (facts("NVIDIA H100 80GB HBM3"), "NVIDIA H100 SXM"),
        (facts("NVIDIA H100 PCIe"), "NVIDIA H100 PCIe"),
        (facts("NVIDIA A100-SXM4-80GB"), "NVIDIA A100 80GB SXM"),
        (facts("NVIDIA A100-PG509-200"), "NVIDIA A100 40GB"),
        (facts("Tesla V100-DGXS-32GB"), "NVIDIA V100 SXM2"),
        (facts("Tesla T4"), "NVIDIA T4"),
        (facts("NVIDIA GH200 144G HBM3e"), "NVIDIA GH200 144GB"),
        (facts("NVIDIA GH200 480GB"), "NVIDIA GH200"),
        (facts("Tesla P100-PCIE-16GB"), "NVIDIA P100 PCIe 16GB"),
        (facts("AMD Instinct MI250"), "AMD Instinct MI250, one of its two devices"),
        (facts("AMD Instinct MI250X"), "AMD Instinct MI250X, one of its two devices"),
        (facts("AMD Instinct MI300X"), "AMD Instinct MI300X"),
        (facts("TPU v6 Lite"), "Google TPU v6e"),
        (facts(capability="7.0", cores=80), "NVIDIA V100 SXM2"),
        (facts(vendor="AMD", capability="9.4", cores=304), "AMD Instinct MI300X"),
        (facts(vendor="AMD", capability="9.5", cores=256), "AMD Instinct MI355X"),
    ],
)
def test_devices_are_known_by_name_or_build(device: DeviceFacts, name: str) -> None:
    found = peaks_of(device)
    assert found is not None
    assert found.name == name


def test_every_entry_has_peaks_and_a_source() -> None:
    for entry in table():
        found = device_table._peaks(entry)
        assert found.source
        assert found.memory and 1e11 < found.memory < 1e14
        assert found.highest_flops and 1e12 < found.highest_flops < 1e17
        assert found.flops("bf16", matrix=True) or found.flops("f16", matrix=True) or not found.matrix


def test_a_users_table_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('[[device]]\nname = "Mine"\nnames = ["H100", "^CPU$"]\nmatrix = {bf16 = 1}\nmemory_gb_s = 2\n')
    monkeypatch.setenv("STEPSCOPE_DEVICES", str(own))
    found = peaks_of(facts("NVIDIA H100 80GB HBM3"))

    assert found is not None
    assert (found.name, found.flops("bf16", matrix=True), found.memory) == ("Mine", 1e12, 2e9)
    assert peaks_of(facts("CPU")) is not None


@pytest.mark.parametrize(
    "text", ["[[device]", "[[device]]\nnames = ['x']", "[[device]]\nname = 'x'\nnames = ['(']", "device = 1"]
)
def test_a_table_that_is_none_is_refused_by_name(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(text)
    monkeypatch.setenv("STEPSCOPE_DEVICES", str(own))

    with pytest.raises(UsageError, match=r"mine\.toml"):
        table()
    monkeypatch.setenv("STEPSCOPE_DEVICES", str(tmp_path / "nothing.toml"))
    with pytest.raises(UsageError, match=r"nothing\.toml"):
        table()


@pytest.mark.parametrize("name", ["Tesla V100-SXM3-32GB", "Tesla V100S-PCIE-32GB", "AMD Instinct MI300A"])
def test_a_device_of_a_similar_name_is_unknown(name: str) -> None:
    assert peaks_of(facts(name)) is None


def test_a_narrow_type_without_a_figure_counts_as_single_precision_and_a_wide_one_is_unknown() -> None:
    found = peaks_of(facts("NVIDIA L4"))
    assert found is not None
    assert found.flops("bf16", matrix=False) == found.flops("f32", matrix=False) == 30.3e12
    assert found.flops("f64", matrix=False) is None


def test_a_device_that_nobody_knows_is_unknown_unless_the_trace_states_its_peaks() -> None:
    assert peaks_of(facts("ACME X1")) is None
    stated = peaks_of(facts("ACME X1", peak_flops=5e12, peak_bytes=1e11))
    assert stated is not None
    assert (stated.flops("bf16", matrix=True), stated.memory, stated.source) == (5e12, 1e11, "the trace")


def test_products_in_single_precision_are_measured_against_tf32() -> None:
    found = peaks_of(facts("NVIDIA H100 80GB HBM3"))
    assert found is not None
    assert found.flops("f32", matrix=True) == pytest.approx(494.7e12)
    assert found.flops("f32", matrix=False) == pytest.approx(66.9e12)
    assert found.flops("f8e4m3fn", matrix=True) == pytest.approx(1978.9e12)
