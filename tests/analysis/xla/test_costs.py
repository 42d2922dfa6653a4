"""Operations and bytes of instructions: by hand, as XLA's own cost analysis counts, and as XProf shows them."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from hlo_build import (
    U8,
    array,
    bf16,
    computation,
    contracting,
    f32,
    fusion,
    nhwc,
    op,
    parameter,
    program,
    tuple_of,
    window,
)
from warm_python import WARM
from xspace_build import text

from stepscope.analysis.hlo.module import Module, read_module
from stepscope.analysis.xla.costs import Costs, costs_of, valid_positions


def cost(data: bytes, name: str) -> tuple[float, float]:
    """Operations and bytes of an instruction."""
    module, costs = decoded(data)
    row = module.row_of(name)
    return float(costs.flops[row]), float(costs.nbytes[row])


def decoded(data: bytes) -> tuple[Module, Costs]:
    module = read_module(np.frombuffer(data, np.uint8))
    return module, costs_of(module)


def test_a_matrix_product_is_two_operations_for_each_product() -> None:
    main = computation(
        "main", parameter("x", bf16(8, 64, 128)), parameter("w", bf16(128, 256), 1),
        op("dot", "dot", f32(8, 64, 256), "x", "w", extra=contracting(2)),
    )  # fmt: skip

    assert cost(program(main), "dot") == (2 * 8 * 64 * 256 * 128, 2 * 8 * 64 * 128 + 2 * 128 * 256 + 4 * 8 * 64 * 256)


def test_a_convolution_leaves_out_the_padding() -> None:
    # 4x4 image, 3x3 window, padding 1: along each side 2 + 3 + 3 + 2 of 12 positions lie on the image.
    main = computation(
        "main", parameter("x", f32(2, 4, 4, 8)), parameter("k", f32(3, 3, 8, 16), 1),
        op("conv", "convolution", f32(2, 4, 4, 16), "x", "k", extra=window(*[(3, 1, 1, 1, 1, 1)] * 2) + nhwc()),
    )  # fmt: skip

    assert valid_positions(4, 4, 3, 1, 1, 1, 1) == 10
    assert cost(program(main), "conv")[0] == 2 * 10 * 10 * 8 * 16 * 2


def test_a_convolution_of_a_library_is_the_same_and_its_scratch_memory_is_no_result() -> None:
    main = computation(
        "main", parameter("x", f32(2, 4, 4, 8)), parameter("k", f32(3, 3, 8, 16), 1),
        op(
            "cudnn-conv.1", "custom-call", tuple_of(f32(2, 4, 4, 16), array(U8, 10**6)), "x", "k",
            extra=window(*[(3, 1, 1, 1, 1, 1)] * 2) + nhwc() + text(28, "__cudnn$convForward"),
        ),
    )  # fmt: skip

    assert cost(program(main), "cudnn-conv.1") == (
        2 * 10 * 10 * 8 * 16 * 2,
        4 * (2 * 4 * 4 * 8 + 3 * 3 * 8 * 16 + 2 * 4 * 4 * 16),
    )


def test_a_matrix_product_of_a_library() -> None:
    config = json.dumps({"gemm_backend_config": {"dot_dimension_numbers": {"lhs_contracting_dimensions": ["1"]}}})
    main = computation(
        "main", parameter("x", bf16(64, 128)), parameter("w", bf16(256, 128), 1),
        op(
            "gemm", "custom-call", tuple_of(bf16(64, 256), array(U8, 4096)), "x", "w",
            extra=text(28, "__cublas$gemm") + text(43, config),
        ),
    )  # fmt: skip

    assert cost(program(main), "gemm") == (2 * 64 * 256 * 128, 2 * (64 * 128 + 256 * 128 + 64 * 256))


@pytest.mark.parametrize(("target", "products"), [("te_fused_attn_forward_ffi", 2), ("te_fused_attn_backward_ffi", 5)])
def test_attention_of_a_library_counts_all_pairs(target: str, products: int) -> None:
    config = (
        "{attn_heads = 16 : i64, input_batch = 2 : i64, q_max_seqlen = 512 : i64, kv_max_seqlen = 1024 : i64, "
        "qk_head_dim = 128 : i64, v_head_dim = 128 : i64}"
    )
    extra = text(28, target) + text(43, config)
    main = computation("main", parameter("q", bf16(2)), op("attn", "custom-call", bf16(2), "q", extra=extra))

    assert cost(program(main), "attn")[0] == products * 2 * (2 * 16 * 512 * 1024 * 128)


def test_what_a_custom_call_computes_is_unknown() -> None:
    main = computation("main", parameter("x", f32(8)), op("call", "custom-call", f32(8), "x", extra=text(28, "mine")))

    flops, nbytes = cost(program(main), "call")
    assert np.isnan(flops)
    assert nbytes == 64


def test_a_fusion_counts_what_is_inside_and_moves_only_what_goes_in_and_out() -> None:
    body = computation(
        "body", parameter("p", f32(64, 32)), parameter("q", f32(32, 16), 1),
        op("dot", "dot", f32(64, 16), "p", "q", extra=contracting(1)),
        op("act", "maximum", f32(64, 16), "dot", "dot"),
        op("exp", "exponential", f32(64, 16), "act"),
    )  # fmt: skip
    main = computation(
        "main", parameter("x", f32(64, 32)), parameter("w", f32(32, 16), 1),
        fusion("fused", f32(64, 16), "x", "w", calls="body"),
    )  # fmt: skip
    data = program(body, main)

    assert cost(data, "fused") == (2 * 64 * 16 * 32 + 64 * 16, 4 * (64 * 32 + 32 * 16 + 64 * 16))
    module, costs = decoded(data)
    assert module.instruction_name(int(costs.matrix[module.row_of("fused")])) == "dot"


def test_a_fusion_reads_of_a_sliced_parameter_only_the_slice() -> None:
    body = computation(
        "body", parameter("p", f32(1000, 8)), parameter("at", array(4), 1),
        op("part", "dynamic-slice", f32(2, 8), "p", "at", "at"), op("twice", "add", f32(2, 8), "part", "part"),
    )  # fmt: skip
    main = computation(
        "main", parameter("x", f32(1000, 8)), parameter("i", array(4), 1),
        fusion("fused", f32(2, 8), "x", "i", calls="body"),
    )  # fmt: skip

    assert cost(program(body, main), "fused") == (16, 64 + 4 + 64)


def test_a_fusion_that_updates_in_place_writes_only_the_update() -> None:
    body = computation(
        "body", parameter("p", f32(1000, 8)), parameter("u", f32(2, 8), 1), parameter("at", array(4), 2),
        op("put", "dynamic-update-slice", f32(1000, 8), "p", "u", "at", "at"),
    )  # fmt: skip
    main = computation(
        "main", parameter("x", f32(1000, 8)), parameter("y", f32(2, 8), 1), parameter("i", array(4), 2),
        fusion("fused", f32(1000, 8), "x", "y", "i", calls="body"),
    )  # fmt: skip

    assert cost(program(body, main), "fused")[1] == 64 + 64 + 4 + 64


def test_a_reduction_counts_its_function_once_for_each_element_that_goes() -> None:
    add = computation("add", parameter("a", f32()), parameter("b", f32(), 1), op("sum", "add", f32(), "a", "b"))
    main = computation(
        "main", parameter("x", f32(64, 32)), parameter("zero", f32(), 1),
        op("reduce", "reduce", f32(64), "x", "zero", calls=("add",)),
    )  # fmt: skip

    assert cost(program(add, main), "reduce")[0] == 64 * 31


def test_a_loop_costs_nothing_by_itself() -> None:
    body = computation("body", parameter("p", f32(8)), op("twice", "add", f32(8), "p", "p"))
    main = computation("main", parameter("x", f32(8)), op("loop", "while", f32(8), "x", calls=("body",)))

    assert cost(program(body, main), "loop") == (0, 0)


def test_sizes_that_no_memory_holds_end_in_no_error() -> None:
    main = computation("main", parameter("x", f32(1 << 40, 1 << 40)), op("y", "add", f32(1 << 40, 1 << 40), "x", "x"))

    assert cost(program(main), "y") == (0, 0)


JAX = """
import json, sys
import jax, jax.numpy as jnp
from jax import lax

def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])

x, w = jnp.ones((64, 128)), jnp.ones((128, 32))
image, kernel, q = jnp.ones((4, 32, 32, 8)), jnp.ones((3, 3, 8, 16)), jnp.ones((2, 16, 4, 8))
layout = ("NHWC", "HWIO", "NHWC")
attention = lambda q: jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, q), -1), q)
pool = lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
programs = {
    "dot": (lambda x, w: x @ w, x, w),
    "convolution": (
        lambda a, k: lax.conv_general_dilated(a, k, (2, 2), "SAME", dimension_numbers=layout), image, kernel
    ),
    "dilated": (
        lambda a, k: lax.conv_general_dilated(
            a, k, (1, 1), [(2, 2), (2, 2)], lhs_dilation=(2, 2), rhs_dilation=(2, 2), dimension_numbers=layout
        ), image, kernel,
    ),
    "grouped": (
        lambda a, k: lax.conv_general_dilated(a, k, (1, 1), "VALID", feature_group_count=8, dimension_numbers=layout),
        image, jnp.ones((3, 3, 1, 16)),
    ),
    "elementwise": (lambda x: jnp.where(x > 0, x * 2 + 1, -x), x),
    "reduction": (lambda x: x.sum(0), x),
    "softmax": (lambda x: jax.nn.softmax(x, -1), x),
    "attention": (attention, q),
    "gradient of attention": (jax.grad(lambda q: attention(q).sum()), q),
    "scatter": (lambda x, i: x.at[i].add(1.0), x, jnp.array([1, 2, 3])),
    "sort": (lambda x: jnp.sort(x, -1), x),
    "cumulated": (lambda x: jnp.cumsum(x, 0), x),
    "pool": (pool, image),
    "gradient of a pool": (jax.grad(lambda a: pool(a).sum()), image),
    "fft": (lambda x: jnp.fft.fft(x).real, x),
}
found = {}
for name, (function, *arguments) in programs.items():
    compiled = jax.jit(function).lower(*arguments).compile()
    costs = compiled.cost_analysis()
    costs = costs[0] if isinstance(costs, list) else costs
    module = compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    proto = b"\\x0a" + varint(len(module)) + module
    found[name] = [proto.hex(), costs.get("flops", 0.0), costs.get("bytes accessed", 0.0)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def compiled_by_jax() -> dict[str, tuple[str, float, float]]:
    """Programs that JAX compiled now, and what XLA's cost analysis says of each as a whole."""
    done = WARM.run("jax", ["-c", JAX], os.environ, timeout=600)
    assert done.returncode == 0, done.stderr
    found: dict[str, tuple[str, float, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_costs_are_those_of_xlas_own_analysis(compiled_by_jax: dict[str, tuple[str, float, float]]) -> None:
    ours, theirs = {}, {}
    for name, (proto, flops, nbytes) in compiled_by_jax.items():
        module, costs = decoded(bytes.fromhex(proto))
        outermost = slice(*module.computation_offsets[module.entry : module.entry + 2].tolist())
        ours[name] = (float(costs.flops[outermost].sum()), float(costs.nbytes[outermost].sum()))
        theirs[name] = (flops, nbytes)

    assert len(ours) == 15
    for name, (flops, nbytes) in theirs.items():
        assert ours[name][0] == pytest.approx(flops, rel=0.01), name
        assert ours[name][1] == pytest.approx(nbytes, rel=0.01), name
