"""The tool `kernel-stats`: what it reads from a kernel's record, what it counts, and XProf beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import oracle
import pytest
from draw import Sort, draw
from reporting import reporter, table

import stepscope
from stepscope.analysis.ops import kernel_stats_tool as kernel_stats
from stepscope.analysis.ops import launches, op_stats_tool
from stepscope.analysis.ops.device_use import device_rows
from stepscope.analysis.trace.kernel_facts import Launch, copied_bytes, launches_of, parse_details
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder
from stepscope.model.trace import StatValue
from stepscope.vocabulary.kernel_names import brief
from stepscope.vocabulary.tensor_cores import kernel_uses, op_is_eligible

K = EventKind
MS = 1000.0  # us


report = reporter(kernel_stats)


# -- what a record says --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "launch"),
    [
        (
            "regs:32 static_shared:512 dynamic_shared:1024 grid:2,3,4 block:128,1,1 occ_pct:62.5",
            Launch(32, 1536, (128, 1, 1), (2, 3, 4), 62.5),
        ),
        ("regs:16 shm:64 grid:160,1,1 block:1024,1,1", Launch(16, 64, (1024, 1, 1), (160, 1, 1), None)),
        ("regs:16\nshm:64\ngrid:1,1,1\nblock:8,1,1", Launch(16, 64, (8, 1, 1), (1, 1, 1), None)),
        (
            " grid:1,1,1 block:2,1,1 private_mem:8 group_mem:256 occ_pct:0",
            Launch(None, 256, (2, 1, 1), (1, 1, 1), None),
        ),
        # The two halves of a pointer.
        (
            "regs:2191500840 static_shared:32462 dynamic_shared:0 grid:1280,1,1 block:256,1,1 occ_pct:0",
            Launch(None, None, (256, 1, 1), (1280, 1, 1), None),
        ),
        ("regs:-1 static_shared:0 dynamic_shared:0", Launch()),
        ("regs:0 static_shared:0 dynamic_shared:0", Launch(None, 0)),
        ("regs:8 static_shared:-5 dynamic_shared:0 grid:0,1,1 block:1,1 occ_pct:250", Launch(8)),
        ("regs:many grid:a,b,c block:1e400,1,1 occ_pct:nan", Launch()),
        ("", Launch()),
    ],
)
def test_the_text_of_a_kernel(text: str, launch: Launch) -> None:
    assert parse_details(text) == launch


KINETO: Mapping[str, StatValue] = {
    "registers per thread": 40,
    "shared memory": 2048,
    "grid": "[50,1,1]",
    "block": "[256,1,1]",
    "warps per SM": 5.0,
    "est. achieved occupancy %": 8,
}


@pytest.mark.parametrize(
    ("changed", "launch"),
    [
        ({}, Launch(40, 2048, (256, 1, 1), (50, 1, 1), 8.0)),
        ({"est. achieved occupancy %": 37.5}, Launch(40, 2048, (256, 1, 1), (50, 1, 1), 37.5)),
        # 0 of 5 warps is a failure of the estimate, 0 of a hundredth of one is a rounded number.
        ({"est. achieved occupancy %": 0}, Launch(40, 2048, (256, 1, 1), (50, 1, 1), None)),
        ({"est. achieved occupancy %": 0, "warps per SM": 0.01}, Launch(40, 2048, (256, 1, 1), (50, 1, 1), 0.0)),
        ({"grid": "[50,1", "block": '"x"', "shared memory": -1}, Launch(40, None, None, None, 8.0)),
    ],
)
def test_the_stats_of_pytorch(changed: Mapping[str, StatValue], launch: Launch) -> None:
    trace = kernels_with({**KINETO, **changed})

    assert facts(trace) == [launch]


def test_a_theoretical_occupancy_beside_the_text_and_kernels_that_say_nothing() -> None:
    text = "regs:32 shm:0 grid:1,1,1 block:1,1,1"
    trace = kernels_with({"kernel_details": text, "theoretical_occupancy_pct": 75.0}, {}, {"kernel_details": text})

    whole = Launch(32, 0, (1, 1, 1), (1, 1, 1), 75.0)
    assert facts(trace) == [whole, Launch(), Launch(32, 0, (1, 1, 1), (1, 1, 1), None)]


def kernels_with(*stats: Mapping[str, StatValue]) -> HostTrace:
    """One kernel of a millisecond for each."""
    builder = TraceBuilder("host")
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU, 0), "stream", kind=LineKind.STREAM)
    for at, each in enumerate(stats):
        stream.event("kernel", at * 2 * 10**9, 10**9, K.KERNEL, each)
    return builder.build()


def facts(trace: HostTrace) -> list[Launch]:
    """How each event was launched."""
    which, different = launches_of(trace, trace.events.start_ps.argsort())
    return [different[place] for place in which.tolist()]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("kind_src:pinned kind_dst:device size:4096 dest:0 async:1", 4096),
        ("num_bytes:17", 17),
        ("size:-3", None),
        ("size:1e30", None),
        ("kind:Unknown", None),
    ],
)
def test_bytes_of_a_copy(text: str, size: int | None) -> None:
    assert copied_bytes(text) == size


# -- tensor cores --------------------------------------------------------------------------------------------------

USE_THEM = (
    "volta_h884gemm_128x64_ldg8_nn_v1", "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn", "ampere_bf16_s16816gemm_bf16",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_align8>(Params)",
    "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_tensor16x8x8_execute",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel",
    "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_void_f32_128x128x64_2x1x1_0_tnn_align8_warpspecialized",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "nvjet_sm100_tst_128x256_64x6_2x1_2cta_v_bz_TNT",
    "void cutlass::device_kernel<cutlass::gemm::collective::MainloopSm90TmaGmmaWarpSpecialized<4>>(Params)",
    "void cutlass::device_kernel<cutlass::gemm::collective::MainloopSm100TmaUmmaWarpSpecialized<4>>(Params)",
    "kernel_tcgen05_bf16", "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64>>(Flash_fwd_params)",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel::Params)", "gemm_fusion_dot_7.kd",
    "Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN_1LDSB0", "Cijk_Alik_Bljk_HHS_BH_MT64x64x32_MI32x32x8x1_SE_K1",
    "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt256x64x8_wt64x16x4", "gridwise_convolution_xdlops_nchw_kcyx_nkhw",
    "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_28GridwiseGemm",
    "void ck_tile::kentry<256, 1, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVS<> > >(Kargs)",
)  # fmt: skip
DO_NOT = (
    "volta_sgemm_128x64_nn", "volta_scudnn_128x64_relu_interior_nn_v1", "ampere_sgemm_32x128_tn",
    "void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(Params)",
    "void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16>(cublasLt::cublasSplitKParams<float>)",
    "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int, int)",
    "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(params)", "ncclDevKernel_AllReduce_Sum_bf16",
    "void at::native::vectorized_elementwise_kernel<4, at::native::GammaFunctor>(int)", "SubTensorOpWithScalar1d",
    "Cijk_Ailk_Bljk_SB_MT64x64x8_SE_K1_TT4_4_WG16_16_1", "void gemv2T_kernel_val<int, int, float, float>(Params)",
    "void ck_tile::kentry<64, 2, ck_tile::FmhaBwdOGradDotOKernel<ck_tile::BlockFmhaBwdOGradDotO<> > >(Kargs)",
    "loop_reduce_fusion_3.kd", "input_transpose_fusion", "Im3d2Col",
)  # fmt: skip


@pytest.mark.parametrize("name", USE_THEM)
def test_names_that_tell_of_tensor_cores(name: str) -> None:
    assert kernel_uses(name, eligible=None) is True


@pytest.mark.parametrize("name", DO_NOT)
def test_names_that_tell_of_none(name: str) -> None:
    assert kernel_uses(name, eligible=True) is False


@pytest.mark.parametrize(("eligible", "uses"), [(True, None), (None, None), (False, False)])
def test_a_name_that_does_not_tell_is_unknown_unless_the_op_tells(eligible: bool | None, uses: bool | None) -> None:
    assert kernel_uses("triton_fused_7", eligible) is uses


@pytest.mark.parametrize(
    ("name", "sort", "eligible"),
    [
        ("dense/MatMul", "MatMul", True), ("x", "_FusedConv2D", True), ("x", "Conv2DBackpropFilter", True),
        ("x", "BatchMatMulV2", True), ("x", "DepthwiseConv2dNative", True), ("x", "CudnnRNNV3", True),
        ("aten::addmm", "addmm", True), ("aten::_convolution", "_convolution", True), ("aten::linear", "linear", True),
        ("aten::scaled_dot_product_attention", "scaled_dot_product_attention", True), ("aten::mm", "mm", True),
        ("jit(f)/dot_general", "dot_general", True), ("jit(f)/conv_general_dilated", "conv_general_dilated", True),
        ("jit(f)/transpose(jvp(bsd,de->bse))/transpose", "transpose", True),
        ("x", "BiasAdd", False), ("x", "Relu", False), ("aten::add", "add", False), ("aten::elu", "elu", False),
        ("jit(f)/reduce_sum", "reduce_sum", False), ("aten::cumsum", "cumsum", False), ("x", "DivNoNan", False),
        ("vllm::fused_moe", "fused_moe", None), ("$loop.py:3 step", "Python", False),
    ],
)  # fmt: skip
def test_ops_that_could_use_tensor_cores(name: str, sort: str, eligible: bool | None) -> None:
    assert op_is_eligible(name, sort) is eligible


# -- rows ----------------------------------------------------------------------------------------------------------

MATMUL = {"tf_op": "dense/MatMul:MatMul"}
DETAILS = "regs:32 static_shared:0 dynamic_shared:1024 grid:{grid},1,1 block:128,1,1 occ_pct:50"
SORTS = {
    "k": Sort(K.KERNEL, "ampere_sgemm_64x64", stats={**MATMUL, "kernel_details": DETAILS.format(grid=2)}),
    "w": Sort(K.KERNEL, "ampere_sgemm_64x64", stats={**MATMUL, "kernel_details": DETAILS.format(grid=8)}),
    "o": Sort(K.KERNEL, "ampere_sgemm_64x64", stats={"tf_op": "x/Add:AddV2", "kernel_details": DETAILS.format(grid=2)}),
    "K": Sort(K.KERNEL, "lone", "correlation_id"),
}


def test_a_row_is_a_kernel_its_op_and_its_launch() -> None:
    found = report(draw("gpu0 s | k--k-w---o-K0-----k\ngpu1 s | k----", SORTS))

    assert table(
        found, "rank", "kernel", "op", "grid_dim", "occurrences", "total_us", "avg_us", "min_us", "max_us"
    ) == [
        (1, "ampere_sgemm_64x64", "dense/MatMul", [2, 1, 1], 4, 11 * MS, 2.75 * MS, 1 * MS, 5 * MS),
        (2, "lone", None, None, 1, 7 * MS, 7 * MS, 7 * MS, 7 * MS),
        (3, "ampere_sgemm_64x64", "dense/MatMul", [8, 1, 1], 1, 4 * MS, 4 * MS, 4 * MS, 4 * MS),
        (4, "ampere_sgemm_64x64", "x/Add", [2, 1, 1], 1, 2 * MS, 2 * MS, 2 * MS, 2 * MS),
    ]
    assert table(
        found, "registers_per_thread", "shared_memory_bytes", "block_dim", "occupancy_percent",
        "tensor_core_eligible", "uses_tensor_core", "total_percent",
    )[:2] == [
        (32, 1024, [128, 1, 1], 50.0, True, False, 45.8333),
        (None, None, None, None, None, None, 29.1667),
    ]  # fmt: skip


def test_copies_and_ops_of_a_tpu_are_no_kernels_and_collectives_are() -> None:
    found = report(draw("gpu0 s | U1--N2--E3\ntpu0 ops | a---"))

    assert table(found, "kernel", "occurrences") == [("ncclAllReduce", 1)]


def test_equal_rows_of_hosts_add_up() -> None:
    one = draw("gpu0 s | k-- k", SORTS, host="one")
    two = draw("gpu0 s | k-----", SORTS, host="two")
    found = report(one, two)

    assert table(found, "occurrences", "total_us", "min_us", "max_us") == [(3, 10 * MS, 1 * MS, 6 * MS)]
    assert [(row["host"], row["kernels"]) for row in found.streams] == [("one", 2), ("two", 1)]


def test_kernels_of_all_launches_are_all_listed() -> None:
    letters = "abcdefghijkl"
    found = report(draw("gpu0 s | " + "".join(letter + "--" for letter in letters) + "a"))

    assert [row["kernel"] for row in found.by_kernel] == [*letters]
    assert sum(float(str(row["percent"])) for row in found.by_kernel) == pytest.approx(100, abs=0.01)
    assert found.by_kernel[0] == {
        **{"kernel": "a", "op": None, "occurrences": 2, "total_us": 4 * MS, "percent": 10.8108},
        **{"avg_us": 2 * MS, "min_us": 1 * MS, "max_us": 3 * MS, "uses_tensor_core": None},
    }


def test_a_screen_begins_with_the_kernels_of_all_launches_unless_rows_are_asked_for() -> None:
    found = report(draw("gpu0 s | k---w----o-K------", SORTS))

    shown = str(found).splitlines()
    assert shown[0] == "Kernels"
    assert "ampere_sgemm_64x64" in shown[3] and "50.0" in shown[3]
    assert str(found.arranged(where="op=dense")).startswith("Kernels by op and launch")


def test_kernels_of_an_op_add_up_to_its_time_on_the_page_of_ops() -> None:
    """Both devices together, on both pages."""
    trace = draw("gpu0 s | k---w----o-K------\ngpu1 s | k--", SORTS)
    of_kernels: Counter[str] = Counter()
    for row in report(trace).by_kernel:
        of_kernels[str(row["op"] or row["kernel"])] += round(float(str(row["total_us"])))
    ops = reporter(op_stats_tool)(trace)

    assert of_kernels == {"dense/MatMul": 12_000, "lone": 7_000, "x/Add": 2_000}
    assert {row["name"]: row["total_self_us"] for row in ops.rows} == of_kernels


def test_rows_beyond_the_limit_are_counted_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_stats, "LAUNCHED", replace(kernel_stats.LAUNCHED, most=1))
    found = report(draw("gpu0 s | a--------b"))

    assert table(found, "kernel", "total_percent") == [("a", 90.0)]
    assert found.by_kernel[-1]["total_us"] == 1 * MS
    assert "1 rows with the least time are not listed; all shares include their time" in found.warnings


def test_shares_of_tensor_cores() -> None:
    sorts = SORTS | {
        "t": Sort(K.KERNEL, "ampere_h16816gemm", stats=MATMUL),
        "u": Sort(K.KERNEL, "triton_7", stats=MATMUL),
    }
    found = report(draw("gpu0 s | t---k--u-o", sorts))

    assert found.tensor_cores == {
        "uses_percent": 40.0, "unknown_percent": 20.0, "eligible_percent": 90.0, "eligible_unused_percent": 30.0,
    }  # fmt: skip


@pytest.mark.parametrize(("facts_of_device", "uses"), [
    ({"compute_cap_major": 6, "device_vendor": "Nvidia"}, False),
    ({"compute_cap_major": 8, "device_vendor": "Nvidia"}, True),
    ({"compute_cap_major": 6, "device_vendor": "AMD"}, True),
    ({}, True),
])  # fmt: skip
def test_devices_from_before_there_were_tensor_cores(facts_of_device: dict[str, StatValue], uses: bool) -> None:
    builder = TraceBuilder("host")
    plane = builder.plane("/device:GPU:0", PlaneKind.GPU, 0, facts_of_device)
    builder.line(plane, "s", kind=LineKind.STREAM).event("conv1x1", 0, 1000, K.KERNEL)

    assert table(report(builder.build()), "uses_tensor_core") == [(uses,)]


@pytest.mark.parametrize(
    ("picture", "says"),
    [
        ("host main | x--", "no device took part"),
        ("tpu0 ops | a--", "a TPU runs ops, not kernels"),
        ("gpu0 s | U1-", "this file shows nothing of a device"),
    ],
)
def test_a_profile_without_kernels_says_why(picture: str, says: str) -> None:
    found = report(draw(picture))

    assert found.rows == ()
    assert says in found.warnings[0]


# -- launches ------------------------------------------------------------------------------------------------------

LAUNCHES = """
    host main | L1  L2     L3--------
    gpu0 s    |   K1-----K2      K3-K3-
    gpu0 t    |         U9-
"""


def test_delays_run_from_the_call_to_its_first_work() -> None:
    row = report(draw(LAUNCHES)).streams[0]

    # K1 begins 2 ms after L1, K2 5 ms after L2, K3 6 ms after L3; the second K3 belongs to the same launch.
    assert (row["delay_median_us"], row["delay_max_us"]) == (5 * MS, 6 * MS)
    assert row["delay_p90_us"] is None  # three launches carry none


def test_gaps_of_a_stream_and_how_much_of_them_the_host_was_late() -> None:
    drawn = draw("host main | L1 L2  L3\ngpu0 s    |  K1   K2      K3-K4")
    row = report(drawn).streams[0]

    # Gaps 3..6 and 8..14; L2 begins at 3, in time, L3 at 7, in time; so the host is late for neither.
    assert (row["gaps"], row["gaps_us"], row["longest_gap_us"], row["gaps_late_percent"]) == (2, 9 * MS, 6 * MS, 0.0)

    drawn = draw("host main | L1      L2\ngpu0 s    |  K1       K2 ")
    row = report(drawn).streams[0]

    # Gap 3..10, and L2 begins at 8: the host is late for 5 of 7.
    assert (row["gaps"], row["gaps_us"], row["gaps_late_percent"]) == (1, 7 * MS, 71.4286)
    assert row["busy_percent"] == 36.3636  # 4 of 1..12


def test_short_kernels_and_kernels_that_cost_less_than_their_launch() -> None:
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU, 0), "s", kind=LineKind.STREAM)
    us = 10**6
    for at, (call, kernel) in enumerate([(20, 5), (20, 30), (4, 9), (8, 100)]):
        start = at * 1000 * us
        main.event("cudaLaunchKernel", start, call * us, K.RUNTIME_CALL, {"correlation_id": at + 1})
        stream.event("k", start + 200 * us, kernel * us, K.KERNEL, {"correlation_id": at + 1})
    found = report(builder.build()).launches

    assert found["kernels"] == found["launches"] == 4
    assert found["short_kernels_percent"] == 50.0  # 5 and 9 us
    assert found["short_kernels_time_percent"] == pytest.approx(100 * 14 / 144, abs=1e-3)
    assert found["cheaper_than_launch_percent"] == 25.0  # 5 us after a call of 20
    assert (found["launch_call_us"], found["launch_delay_us"], found["long_delays_percent"]) == (13.0, 200.0, 100.0)


def test_one_call_that_launches_a_graph_is_one_launch() -> None:
    found = report(draw("host main | L1---\ngpu0 s    |   K1K1K1K1")).launches

    assert (found["kernels"], found["launches"], found["launch_delay_us"]) == (4, 1, 2 * MS)
    assert found["cheaper_than_launch_percent"] is None


def test_kernels_of_one_graph_that_begin_together_are_one_launch() -> None:
    found = report(draw("host main | L1---\ngpu0 s    |   K1K1\ngpu0 t    |   K1\ngpu1 s    |   K1")).launches

    assert (found["kernels"], found["launches"], found["launch_delay_us"]) == (4, 1, 2 * MS)


def test_the_busiest_streams_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "STREAMS", replace(launches.STREAMS, most=1))
    found = report(draw("gpu0 s | K1-\ngpu0 t | K2----"))

    assert [(row["stream"], row["kernels"]) for row in found.streams] == [("t", 1)]


# -- names for the eye ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("gemm_fusion_dot.kd", "gemm_fusion_dot.kd"),
        (
            "void at::native::(anonymous namespace)::CatArrayBatched<at::native::OpaqueType<2u>, int, 4>(int, char*)",
            "CatArrayBatched<OpaqueType<2u>, int, 4>",
        ),
        ("void a::k<4, a::F<float> >(int, float const*, a::very::long::list::of::parameters)", "a::k<4, a::F<float> >"),
        ("Cijk_" + "x" * 80, "Cijk_" + "x" * 50 + "…"),
        ("void (*)(" + "x" * 80, "(*)"),
    ],
)
def test_brief_names(name: str, shown: str) -> None:
    assert brief(name) == shown


# -- beside XProf --------------------------------------------------------------------------------------------------


def of_xprof(session: Path) -> list[dict[str, Any]]:
    """XProf's rows."""
    return list(oracle.kernel_stats(sorted(session.rglob("*.xplane.pb"))).rows)


def dimensions(text: str) -> list[int]:
    """`2,1,1` as a list."""
    return [int(part) for part in text.split(",")]


def test_every_kernel_of_xprof_is_ours(corpus: Path) -> None:
    """On the profile whose kernels XProf attributes: equal rows but for what docs/differences.md lists."""
    ours = stepscope.load(corpus / "jax-mi300x-attention").kernel_stats().rows
    theirs = of_xprof(corpus / "jax-mi300x-attention")
    for row in theirs:
        # Kernels without a framework op are one row there; here each XLA instruction has its own.
        mine = [
            each for each in ours
            if each["kernel"] == row["kernel_name"] and (each["op"] == row["op_name"] or not row["op_name"])
        ]  # fmt: skip
        count, total = sum(each["occurrences"] for each in mine), sum(each["total_us"] for each in mine)
        assert (count, total) == (row["occurrences"], pytest.approx(row["total_duration_us"], abs=0.001))
        assert total / count == pytest.approx(row["avg_duration_us"], abs=0.001)
        assert min(each["min_us"] for each in mine) == row["min_duration_us"]
        assert max(each["max_us"] for each in mine) == row["max_duration_us"]
        assert {tuple(each["grid_dim"]) for each in mine} == {tuple(dimensions(row["grid_dim"]))}
        assert {tuple(each["block_dim"]) for each in mine} == {tuple(dimensions(row["block_dim"]))}
        assert {each["uses_tensor_core"] for each in mine} == {row["is_kernel_using_tensor_core"]}
    assert len(theirs) == 19


def test_hosts_are_added_up_where_xprof_lists_them_one_by_one(corpus: Path) -> None:
    ours: dict[tuple[Any, ...], list[float]] = {}
    found = stepscope.load(corpus / "tf-gpu-multi-worker").kernel_stats()
    for row in found.rows:
        key = (row["kernel"], tuple(row["grid_dim"]), row["registers_per_thread"], row["shared_memory_bytes"])
        entry = ours.setdefault(key, [0, 0.0])
        entry[0] += row["occurrences"]
        entry[1] += row["total_us"]
    theirs: dict[tuple[Any, ...], list[float]] = {}
    for row in of_xprof(corpus / "tf-gpu-multi-worker"):
        grid = tuple(dimensions(row["grid_dim"]))
        entry = theirs.setdefault((row["kernel_name"], grid, row["registers_per_thread"], row["shmem_bytes"]), [0, 0.0])
        entry[0] += row["occurrences"]
        entry[1] += row["total_duration_us"]
        assert row["op_name"] == ""  # older profiles' annotations; ours reads them

    assert ours.keys() == theirs.keys()
    assert all(ours[key] == pytest.approx(theirs[key], abs=0.01) for key in theirs)
    assert all(row["op"] for row in found.rows)


@pytest.mark.parametrize(
    ("session", "registers", "grid", "occupancy", "uses", "eligible"),
    [
        # Single precision on a V100; PyTorch's own view of this profile said 67.6 % eligible.
        ("torch-v100-resnet50-workers0", True, True, True, 0.0, 67.6),
        # Shares of kernels whose names say tensorop, xmma, flash_fwd or an mma shape; on AMD MI, gtcx, xdl or Fmha.
        ("torch-nccl", True, True, True, 21.7, 34.7),
        ("torch-h100-qwen", True, True, True, 36.6, 36.6),
        ("torch-h100-owlv2", True, True, True, 46.8, 47.0),
        ("torch-mi300-resnet", False, False, False, 6.4, 12.0),
        ("torch-sglang-qwen3", False, True, False, 89.4, 89.4),
    ],
)
def test_kernels_of_pytorch(
    session: str, registers: bool, grid: bool, occupancy: bool, uses: float, eligible: float, corpus: Path
) -> None:
    found = stepscope.load(corpus / session).kernel_stats()
    rows = found.rows

    assert any(row["registers_per_thread"] for row in rows) is registers
    assert all(row["grid_dim"] for row in rows) is grid
    assert any(row["occupancy_percent"] for row in rows) is occupancy
    assert all(row["occupancy_percent"] is None or 0 <= row["occupancy_percent"] <= 100 for row in rows)
    assert found.tensor_cores["uses_percent"] == pytest.approx(uses, abs=0.06)
    assert found.tensor_cores["eligible_percent"] == pytest.approx(eligible, abs=0.06)
    assert sum(row["total_percent"] for row in rows) == pytest.approx(100, abs=0.1)
    assert all(row["min_us"] <= row["avg_us"] <= row["max_us"] for row in rows)


def test_ranks_are_those_of_xprof(corpus: Path) -> None:
    ours = stepscope.load(corpus / "jax-mi300x-conv").kernel_stats().rows
    theirs = of_xprof(corpus / "jax-mi300x-conv")

    assert [(row["rank"], row["kernel"], row["op"], row["uses_tensor_core"]) for row in ours] == [
        (row["rank"], row["kernel_name"], row["op_name"], row["is_kernel_using_tensor_core"]) for row in theirs
    ]
    assert [row["tensor_core_eligible"] for row in ours] == [row["is_op_tensor_core_eligible"] for row in theirs]


def test_garbage_is_unknown_where_xprof_shows_it(corpus: Path) -> None:
    theirs = of_xprof(corpus / "jax-mi300x-conv")[0]
    ours = stepscope.load(corpus / "jax-mi300x-conv").kernel_stats().rows[0]

    assert (theirs["registers_per_thread"], theirs["shmem_bytes"]) == (2191500840, 32462)
    assert (ours["registers_per_thread"], ours["shared_memory_bytes"], ours["occupancy_percent"]) == (None, None, None)


def test_shared_memory_of_amd_devices_is_read(corpus: Path) -> None:
    theirs = {row["kernel_name"]: row["shmem_bytes"] for row in of_xprof(corpus / "jax-mi300x-attention")}
    ours = stepscope.load(corpus / "jax-mi300x-attention").kernel_stats().rows

    assert set(theirs.values()) == {0}
    assert {row["kernel"]: row["shared_memory_bytes"] for row in ours}["gemm_fusion_dot.kd"] == 32768


# -- how well kernels fill their devices ------------------------------------------------------------------------------


def kernel(blocks: float, occupancy: int) -> Sort:
    facts = {"blocks per SM": blocks, "est. achieved occupancy %": occupancy}
    return Sort(EventKind.KERNEL, "kernel", "", facts)


FILLING = {"K": kernel(0.75, 50), "H": kernel(0.5, 20), "N": Sort(EventKind.COLLECTIVE, "nccl")}


def test_blocks_of_kernels_that_run_at_once_add_up_to_one_at_most():
    [row] = device_rows(
        draw("""
            host main | M0-------
            gpu0 s    | K---
            gpu0 t    |   H---  N
        """, FILLING)
    )  # fmt: skip

    # 0.75 for 2 ms, 1 for 2, 0.5 for 2; nothing is known of the collective.
    assert row == {"host": "host", "device": "GPU:0", "window_ms": 9.0} | {
        "utilization_percent": 77.7778, "sm_efficiency_percent": 50.0, "occupancy_percent": 35.0,
    }  # fmt: skip


def test_what_is_not_recorded_is_unknown():
    [row] = device_rows(draw("host main | M0---\ngpu0 s | k-"))
    assert [*row.values()][3:] == [40.0, None, None]
    assert device_rows(draw("host main | M0---")) == []


def test_each_device_tells_what_its_own_kernels_tell():
    rows = device_rows(draw("host main | M0---\ngpu0 s | K---\ngpu1 s | k---", FILLING))
    assert [[*row.values()][4:] for row in rows] == [[60.0, 50.0], [None, None]]


@pytest.mark.parametrize("garbage", [float("inf"), -1.0, 1e300])
def test_figures_that_no_device_has_are_unknown(garbage: float):
    sorts = {"K": Sort(EventKind.KERNEL, "kernel", "", dict.fromkeys(FILLING["K"].stats, garbage))}
    [row] = device_rows(draw("host main | M0---\ngpu0 s | K---", sorts))
    assert [*row.values()][4:] == [None, None]


def test_a_real_job_has_the_figures_of_the_plugin(corpus: Path) -> None:
    """ResNet-50 on a V100: 55.5 %, 54.7 % and 49.13 % in `torch_tb_profiler` 0.4, which bounds steps by their device
    work; here the host sets the pace, and steps are the marks.
    """
    [row] = stepscope.load(corpus / "torch-v100-resnet50-workers0").report("kernel-stats").to_dict()["devices"]
    assert row["utilization_percent"] == pytest.approx(54.9, abs=0.1)
    assert row["sm_efficiency_percent"] == pytest.approx(54.1, abs=0.1)
    assert row["occupancy_percent"] == pytest.approx(49.05, abs=0.01)
