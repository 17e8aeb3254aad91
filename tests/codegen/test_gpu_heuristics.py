"""What the heuristics choose for machines with workgroups, and that it fits them."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import bench_package  # noqa: F401
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.traffic import traffic_of
from polygrad.codegen.lower.passes import lower
from polygrad.codegen.lower.workgroup_dimensions import grid_of, workgroup_of
from polygrad.codegen.opts import cost
from polygrad.codegen.opts.heuristics import choose
from polygrad.codegen.opts.opt import OptKind, render_opts
from polygrad.codegen.target import Target, Workgroups
from polygrad.dtype import dtypes
from polygrad.schedule.kernel_info import rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import AxisKind
from polygrad.uop.ops import Ops
from polygrad.uop.spec import verify
from polygrad.uop.tensor_cores import BY_NAME
from tests.codegen.grid_kernels import arranged, asts_of, data, decided, kernel_of

GPU = Target("GPU", simd_bytes=16, index_bits=32, workgroups=Workgroups())
FEW = Workgroups(invocations=64, sizes=(64, 8, 4), count=100, shared_bytes=2048)
SMALL = Target("GPU", index_bits=32, workgroups=FEW)
SOFTWARE = Target("GPU", simd_bytes=16, index_bits=32, workgroups=Workgroups(software=True))


def chosen(tensor, target=GPU):
    return choose(kernel_of(tensor, target), target)


def kinds(tensor, target=GPU):
    return {opt.kind for opt in chosen(tensor, target)}


@pytest.mark.parametrize(
    ("tensor", "opts"),
    [
        (  # tiles of 32 x 32, a vector of four columns of four rows to each of 8 x 8 invocations
            lambda: data(1024, 1024) @ data(1024, 1024),
            "GLOBAL r0, GLOBAL r1, LOCAL r0 32, UPCAST r0.1 4, SIMD r1 4 1, LOCAL r1.0 8, SPLIT r2 32, "
            "STAGE r2.1 LOAD 0, STAGE r2.1 LOAD 2",
        ),
        (  # rows that no vector is aligned in
            lambda: data(1000, 500) @ data(500, 777),
            "GLOBAL r0, GLOBAL r1, LOCAL r0 32, UPCAST r0.1 4, LOCAL r1 32, UPCAST r1.1 4, SPLIT r2 25, "
            "STAGE r2.1 LOAD 0, STAGE r2.1 LOAD 2",
        ),
        (  # one workgroup alone: four parts of its invocations have a quarter of the sums each
            lambda: data(16, 1024) @ data(1024, 16),
            "GLOBAL r0, GLOBAL r1, LOCAL r0 16, UPCAST r0.1 2, SIMD r1 4 1, LOCAL r1.0 4, GROUP r2 4, "
            "SPLIT r2.0 8, STAGE r2.0.1 LOAD 0, STAGE r2.0.1 LOAD 2",
        ),
        (  # 3 x 3 windows of two channels at a time
            lambda: data(1, 16, 34, 34).conv2d(data(32, 16, 3, 3)),
            "GLOBAL r0, GLOBAL r1, GLOBAL r2, LOCAL r0 32, UPCAST r0.1 4, LOCAL r2 32, UPCAST r2.1 4, "
            "SPLIT r3 2, STAGE r3.1 r4 r5 LOAD 0, STAGE r3.1 r4 r5 LOAD 2",
        ),
        (lambda: data(700, 512) @ data(512), "GLOBAL r0, SIMD r1 4 1, GROUP r1.0 128"),
        (lambda: data(512) @ data(512, 700), "GLOBAL r0, LOCAL r0 32, GROUP r1 8, UNROLL r1.0 4"),
        (  # of 16 bits, too
            lambda: data(64, 512, dtype="float16") + data(64, 512, dtype="float16"),
            "MERGE r0 r1, GLOBAL r0, SIMD r0 4 1, LOCAL r0.0 256",
        ),
        (lambda: data(40, 100).softmax(1), "GLOBAL r0, LOCAL r1 32, GROUP r3 32, GROUP r2 32"),
        (  # what is left of each sum, six rounds, is no loop
            lambda: data(40, 768).layernorm(),
            "GLOBAL r0, LOCAL r1 128, GROUP r3 128, GROUP r2 128, UNROLL r3.0 6, UNROLL r2.0 6",
        ),
        (lambda: data(1000).sum(), "SIMD r0 4 1, GROUP r0.0 128"),
        (  # blocks of 4 x 4, of what is read along one axis and written along another
            lambda: data(60, 64, 500).permute(2, 1, 0) + 1,
            "GLOBAL r0, GLOBAL r1, GLOBAL r2, LOCAL r2 32, UPCAST r2.1 4, LOCAL r0 64, UPCAST r0.1 4",
        ),
        (  # four rows of which no vector is aligned
            lambda: data(1023, 1001) + data(1001),
            "GLOBAL r0, GLOBAL r1, LOCAL r0 4, UPCAST r0.1 4, LOCAL r1 256",
        ),
        (  # vectors of what is written, wherever what is read lies
            lambda: data(512, 512).flip(1) + 1,
            "GLOBAL r0, GLOBAL r1, SIMD r1 4 1, LOCAL r1.0 128, LOCAL r0 2",
        ),
        (  # few elements keep an invocation each
            lambda: data(60, 61) + data(61),
            "GLOBAL r0, GLOBAL r1, LOCAL r1 61, LOCAL r0 4",
        ),
    ],
)
def test_choices(tensor, opts):
    assert render_opts(chosen(tensor())) == opts


@pytest.mark.parametrize(
    ("tensor", "opts"),
    [
        (  # tiles of 8 x 8 in registers, in two vectors of columns
            lambda: data(256, 256) @ data(256, 256),
            "GLOBAL r0, GLOBAL r1, LOCAL r0 32, UPCAST r0.1 8, SIMD r1 4 2, LOCAL r1.0 4",
        ),
        (  # a vector alone, of which all lanes or none are another tile's
            lambda: data(64, 64) @ data(64, 100),
            "GLOBAL r0, GLOBAL r1, LOCAL r0 32, UPCAST r0.1 8, SIMD r1 4 1, LOCAL r1.0 4",
        ),
        (  # no vectors: neither operand's rows are aligned
            lambda: data(37, 50) @ data(50, 29),
            "GLOBAL r0, GLOBAL r1, LOCAL r0 16, UPCAST r0.1 4, LOCAL r1 16, UPCAST r1.1 8",
        ),
        (  # few columns, and few rows: the other operand is read once for all of them
            lambda: data(256, 512) @ data(512, 4),
            "GLOBAL r0, GLOBAL r1, LOCAL r0 32, UPCAST r0.1 8, SIMD r1 4 1",
        ),
        (  # tiles that overlap as little as they can: all seven columns of an image
            lambda: data(1, 64, 9, 9).conv2d(data(64, 64, 3, 3)),
            "GLOBAL r0, GLOBAL r1, GLOBAL r2, LOCAL r0 32, UPCAST r0.1 8, LOCAL r2 7, UPCAST r2.1 7",
        ),
        (  # few sums: smaller tiles, and all terms of a sum in one invocation
            lambda: data(16, 1024) @ data(1024, 16),
            "GLOBAL r0, GLOBAL r1, LOCAL r0 16, UPCAST r0.1 4, SIMD r1 4 1, LOCAL r1.0 4",
        ),
    ],
)
def test_a_processor_that_does_a_gpus_work_has_larger_tiles_and_shares_nothing(tensor, opts):
    tensor = tensor()
    assert render_opts(chosen(tensor, SOFTWARE)) == opts
    (ast,) = asts_of(tensor)
    verify(lower(ast, SOFTWARE), "linear")


def test_elements_of_a_byte_are_vectors_where_they_lie_in_words():
    add = data(64, 512, dtype="int8") + data(64, 512, dtype="int8")
    assert OptKind.SIMD not in kinds(add) and OptKind.SIMD in kinds(add, replace(GPU, packed=(dtypes.int8,)))


def test_sums_that_are_many_and_across_memory_have_an_invocation_each():
    assert OptKind.GROUP not in kinds(data(100, cost.MANY_SUMS).sum(0))
    assert OptKind.GROUP in kinds(data(100, cost.MANY_SUMS // 4).sum(0))


def test_short_sums_are_not_shared():
    assert OptKind.GROUP not in kinds(data(50, cost.MIN_GROUP - 1).sum(1))
    assert OptKind.GROUP in kinds(data(50, cost.MIN_GROUP).sum(1))


@pytest.mark.parametrize(
    ("tensor", "opts"),
    [
        (lambda: data(60, 512).sum(1), "GLOBAL r0, LOCAL r0 16, SIMD r1 4 1, UNROLL r1.0 4"),
        (lambda: data(60, 513).sum(1), "GLOBAL r0, LOCAL r0 16, UNROLL r1 3"),
        (  # of neighbours, where memory goes along them
            lambda: data(512, 256).sum(0),
            "GLOBAL r0, SIMD r0 4 1, LOCAL r0.0 16, UNROLL r1 4",
        ),
        (  # the maximum, the sum of the exponentials, and these
            lambda: data(40, 100).softmax(1),
            "GLOBAL r0, LOCAL r0 16, SIMD r3 4 1, SIMD r2 4 1, SIMD r1 4 1, UNROLL r3.0 5",
        ),
        # few sums are shared all the same, by few
        (lambda: data(8, 512).sum(1), "GLOBAL r0, SIMD r1 4 1, GROUP r1.0 8, UNROLL r1.0.0 16"),
        (lambda: data(1000).sum(), "SIMD r0 4 1, GROUP r0.0 8"),
        (lambda: data(1000, 3).sum(0), "GLOBAL r0, LOCAL r0 2, GROUP r1 4, UNROLL r1.0 5"),
    ],
)
def test_a_processor_that_does_a_gpu_s_work_shares_no_sums_where_there_are_many(tensor, opts):
    tensor = tensor()
    assert render_opts(chosen(tensor, SOFTWARE)) == opts
    (ast,) = asts_of(tensor)
    verify(lower(ast, SOFTWARE), "linear")


@pytest.mark.parametrize("target", [GPU, SOFTWARE])
@pytest.mark.parametrize(
    ("tensor", "unrolled", "loops"),
    [
        # nine terms: no loop at all
        (lambda: data(1, 40, 30, 30).conv2d(data(40, 1, 3, 3), groups=40), [3, 3], 0),
        # those of a window and not of its channels
        (lambda: data(1, 31, 30, 30).conv2d(data(1, 31, 3, 3)), [3, 3], 1),
        # four terms at a time, or what divides the loop
        (lambda: data(100, cost.MANY_SUMS + 1).sum(0), [4], 1),
        (lambda: data(99, cost.MANY_SUMS + 1).sum(0), [3], 1),
        # the last two have a loop of their own, which is short
        (lambda: data(46, cost.MANY_SUMS + 1).sum(0), [4, 2], 1),
        # long rounds
        (lambda: data(64, cost.MANY_SUMS + 1).exp().tanh().erf().sum(0), [], 1),
    ],
)
def test_short_rounds_of_sums_are_one(tensor, unrolled, loops, target):
    opts = chosen(tensor := tensor(), target)
    assert [opt.numbers[0] for opt in opts if opt.kind is OptKind.UNROLL] == unrolled
    (ast,) = asts_of(tensor)
    kernel = lower(ast, target)
    assert sum(n.op is Ops.END for n in kernel) == loops


@pytest.mark.parametrize("target", [GPU, SOFTWARE])
def test_sums_that_many_values_of_a_round_go_to_stay_loops(target):
    assert OptKind.UNROLL not in kinds(data(256, 512) @ data(512, 256), target)


def test_a_transposed_convolution_multiplies_no_zeros():
    """Each output element of a filter of 4 x 4 with stride 2 has four of its taps, of 16 channels."""
    (call,) = arranged(data(1, 16, 10, 12).conv_transpose2d(data(16, 8, 4, 4), stride=2), target=GPU)
    ranges = [n for n in call.ast.toposort() if n.op is Ops.RANGE]
    terms = prod(r.src[0].arg for r in ranges if r.arg.kind is AxisKind.REDUCE)
    assert (rounds(ranges) // terms, terms) == (8 * 22 * 26, 16 * 2 * 2)


@pytest.mark.parametrize("stride", [1, 2])
def test_kernels_that_skip_no_terms_are_left_alone(stride):
    (ast,) = asts_of(data(1, 16, 10, 12).conv2d(data(8, 16, 3, 3), stride=stride))
    (call,) = decided("polyphase", [KernelCall(ast, ())], GPU)
    assert call.ast is ast


def test_running_values_stay_in_order():
    assert render_opts(chosen(data(40, 30).cumsum(0))) == "GLOBAL r1, LOCAL r1 30"


def tensors():
    n = st.integers(1, 80)
    return st.one_of(
        st.builds(lambda a, b, c: data(a, b) @ data(b, c), n, n, n),
        st.builds(lambda a, b: data(a, b).softmax(1), n, n),
        st.builds(lambda a, b, axis: data(a, b).sum(axis), n, n, st.sampled_from([0, 1, None])),
        st.builds(lambda a, b, c: data(a, b, c).permute(2, 0, 1) + 1, n, n, n),
        st.builds(lambda a, b: data(1, a, 12, b + 2).conv2d(data(a + 3, a, 3, 3)), st.integers(1, 9), n),
    )


@given(tensor=tensors(), target=st.sampled_from([GPU, SMALL, SOFTWARE]))
def test_what_is_chosen_fits_the_target(tensor, target):
    limits = target.workgroups
    for ast in asts_of(tensor):
        linear = lower(ast, target)  # an OptError would say what does not fit
        verify(linear, "linear")
        size = workgroup_of(linear)
        assert all(n <= most for n, most in zip(size, limits.sizes, strict=True))
        assert size[0] * size[1] * size[2] <= limits.invocations
        assert all(n.vmax <= limits.count for n in grid_of(linear))


# --- launches: how much of a GPU they keep busy, and what they read, beside what a kernel by hand does

KB, MB = 1 << 10, 1 << 20
LARGE = Workgroups(invocations=1024, sizes=(1024, 1024, 64), shared_bytes=48 * KB, subgroup=32)
CORES = (BY_NAME["mma_m16n8k16_half"],)
NVIDIA = Target("CUDA", simd_bytes=16, index_bits=32, workgroups=LARGE, alignment=256, tensor_cores=CORES)


def convolution_gradient():
    x, w = data(16, 32, 28, 28), data(32, 32, 3, 3)
    w.requires_grad = True
    (out,) = x.conv2d(w, padding=1).gradient(w, gradient=data(16, 32, 28, 28))
    return out


# the operands' bytes, each counted as often as tiles of 32 x 32 read it
LAUNCHES = {
    "sum": (lambda: data(4 * MB).sum(), 64 * KB, 16 * MB),
    "mean of two axes": (lambda: data(2048, 2048).mean(), 64 * KB, 16 * MB),
    "argmax": (lambda: data(MB).argmax(), 4 * KB, 8 * MB),
    "columns of a tall matrix": (lambda: data(64 * KB, 64).sum(0), 64 * KB, 16 * MB),
    "four columns": (lambda: data(MB, 4).sum(0), 64 * KB, 16 * MB),
    "rows": (lambda: data(64, 64 * KB).sum(1), 64 * KB, 16 * MB),
    "the gradient of a bias": (lambda: data(16, 64, 64, 64).sum((0, 2, 3)), 32 * KB, 16 * MB),
    "the gradient of a scale": (lambda: (data(8 * KB, 768) * data(8 * KB, 768)).sum(0), 48 * KB, 48 * MB),
    "softmax of long rows": (lambda: data(8, 128 * KB).softmax(1), 128 * KB, 13 * MB),
    "matrix and vector": (lambda: data(4096, 4096) @ data(4096), 1 * MB, 128 * MB),
    "vector and matrix": (lambda: data(64 * KB) @ data(64 * KB, 64), 64 * KB, 32 * MB),
    "product": (lambda: data(1024, 1024) @ data(1024, 1024), 64 * KB, 256 * MB),
    "product of few elements": (lambda: data(128, 4096) @ data(4096, 128), 16 * KB, 16 * MB),
    "product of a tile": (lambda: data(32, 8192) @ data(8192, 32), 2 * KB, 2 * MB),
    "half product of few elements": (
        lambda: data(128, 4096, dtype="float16") @ data(4096, 128, dtype="float16"), 4 * KB, 8 * MB,
    ),
    "the gradient of a convolution": (convolution_gradient, 9 * KB, 64 * MB),
}  # fmt: skip


@pytest.mark.parametrize("which", LAUNCHES)
def test_launches_have_invocations_and_read_little(which):
    make, invocations, nbytes = LAUNCHES[which]
    target = NVIDIA if which.startswith("half") else GPU
    launches = []
    for call in arranged(make(), target=target):
        linear = lower(call.ast.replace(arg=None), target)
        count = prod(n.vmax for n in grid_of(linear)) * prod(workgroup_of(linear))
        launches.append((traffic_of(linear).read, count))
    # all but what is next to nothing has as many invocations
    assert all(count >= invocations for read, count in launches if read > nbytes // 10)
    assert sum(read for read, _ in launches) <= 1.2 * nbytes
