"""TENSOR_CORE: fragments, what is refused, what is chosen, and what becomes of it. That kernels compute the
same with tensor cores is tested in tests/gpu_emulation."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from polygrad import Tensor, dtypes
from polygrad.codegen.lower.passes import UNOPTIMIZED, LoweringContext, run_passes
from polygrad.codegen.lower.workgroup_dimensions import workgroup_of
from polygrad.codegen.opts.heuristics import choose
from polygrad.codegen.opts.opt import apply_opts, parse_opts, render_opts
from polygrad.codegen.opts.search_space import neighbours
from polygrad.codegen.target import Target, Workgroups
from polygrad.errors import OptError
from polygrad.renderer.cstyle.cuda import CUDABuilder
from polygrad.renderer.cstyle.msl import MSLBuilder
from polygrad.renderer.emit import emit
from polygrad.uop.ops import Ops
from polygrad.uop.parser import parse
from polygrad.uop.printer import render
from polygrad.uop.tensor_cores import BY_NAME, TENSOR_CORES
from tests.codegen import grid_kernels
from tests.codegen.grid_kernels import arranged

CUDA = Target(
    "CUDA",
    simd_bytes=16,
    fma=True,
    scalar_fma=True,
    index_bits=32,
    workgroups=Workgroups(subgroup=32),
    alignment=256,
    tensor_cores=(BY_NAME["mma_m16n8k16_half"], BY_NAME["mma_m16n8k16_bfloat"]),
)
HOPPER = replace(
    CUDA,
    workgroups=Workgroups(subgroup=32, shared_bytes=227 << 10, copies=True),
    tensor_cores=tuple(c for c in TENSOR_CORES if c.in_memory) + CUDA.tensor_cores,
)
ON_CORE = "GLOBAL r0, GLOBAL r1, TENSOR_CORE r0 r1 r2 0"


def data(*shape, dtype="float16"):
    return grid_kernels.data(*shape, dtype=dtype)


def kernel_of(tensor, target=CUDA):
    return grid_kernels.kernel_of(tensor, target)


def linear_of(tensor, opts=None, target=CUDA):
    return grid_kernels.linear_of(tensor, target, opts)


# --- fragments


@pytest.mark.parametrize("core", TENSOR_CORES, ids=lambda core: core.name)
@pytest.mark.parametrize("matrix", "abc")
def test_the_lanes_of_a_subgroup_have_each_element_once(core, matrix):
    fragment = getattr(core, matrix)
    rows, columns = {"a": (core.m, core.k), "b": (core.k, core.n), "c": (core.m, core.n)}[matrix]
    lanes = itertools.product(*map(range, core.lanes))
    if core.in_memory and matrix != "c":  # each has all
        lanes = [(0,) * len(core.lanes)]
    elements = list(itertools.product(*map(range, fragment.elements)))

    def place(terms, lane, element):
        return sum(t.step * (lane if t.is_lane else element)[t.axis] for t in terms)

    places = [
        (place(fragment.rows, lane, e), place(fragment.columns, lane, e)) for lane in lanes for e in elements
    ]
    assert sorted(places) == list(itertools.product(range(rows), range(columns)))


def test_a_core_is_one_of_the_table():
    assert len(BY_NAME) == len(TENSOR_CORES) and all(core.size % 32 == 0 for core in TENSOR_CORES)


# --- cores that read memory of the workgroup


def test_operands_of_a_core_that_reads_memory_are_in_buffers():
    kernel = kernel_of(data(256, 256) @ data(256, 256), HOPPER)
    opts = choose(kernel, HOPPER)
    assert render_opts(opts) == (
        "GLOBAL r0, GLOBAL r1, TENSOR_CORE r0 r1 r2 6, LOCAL r0.0 2, STAGE LOAD 0 3, STAGE LOAD 2 3"
    )
    made = apply_opts(kernel, opts)[-1][1]
    memory = [n.arg for n in made.toposort() if n.op is Ops.STAGE]
    assert [(m.size, m.depth, m.swizzled) for m in memory] == [(128 * 64, 3, True)] * 2
    assert parse(render(made))[-1] is made and parse_opts(render_opts(opts)) == opts
    linear = linear_of(data(256, 256) @ data(256, 256), None, HOPPER)
    assert workgroup_of(linear) == (128, 2, 1)
    assert [n.arg.groups for n in linear if n.op is Ops.BARRIER and n.arg is not None] == [1]


@pytest.mark.parametrize(
    ("shape", "core"),
    [
        ((256, 256, 64), 7),
        ((64, 256, 256), 6),
        ((256, 64, 256), 6),
        ((1024, 40, 1024), 6),
        ((32, 256, 32), 0),
    ],
)
def test_the_core_that_leaves_least_of_its_blocks_is_used(shape, core):
    m, k, n = shape
    opts = choose(kernel_of(data(m, k) @ data(k, n), HOPPER), HOPPER)
    assert [opt.numbers for opt in opts if opt.kind.value == "TENSOR_CORE"] == [(core,)]


@pytest.mark.parametrize(
    ("opts", "message"),
    [
        ("", "expected a STAGE of each operand, which this core reads in memory"),
        (", STAGE LOAD 0 3", "expected a STAGE of each operand"),
        (", STAGE LOAD 0 9", "expected 1 to 8 buffers, got 9"),
        (", STAGE LOAD 0 5, STAGE LOAD 2 5", "expected a loop of 5 rounds or more"),
    ],
)
def test_what_a_core_that_reads_memory_needs_is_said(opts, message):
    text = f"GLOBAL r0, GLOBAL r1, TENSOR_CORE r0 r1 r2 6{opts}"
    with pytest.raises(OptError, match=message):
        linear_of(data(256, 256) @ data(256, 256), text, HOPPER)


def test_a_search_tries_other_numbers_of_buffers():
    kernel = kernel_of(data(256, 256) @ data(256, 256), HOPPER)
    tried = [render_opts(opts) for opts, _ in neighbours(kernel, choose(kernel, HOPPER), HOPPER)]
    assert any("STAGE LOAD 0 2, STAGE LOAD 2 3" in text for text in tried)


# --- what is refused


@pytest.mark.parametrize(
    ("make", "opts", "message"),
    [
        (
            lambda: data(16, 16) @ data(16, 16),
            "TENSOR_CORE r0 r1 r2 10",
            "expected a core from 0 to 9, got 10",
        ),
        (lambda: data(16, 16) @ data(16, 16), "TENSOR_CORE r0 r1 r2 1", "sum of products of bfloat16"),
        (lambda: data(16, 16) @ data(16, 16), "TENSOR_CORE r0 r2 r1 0", "two loops over output elements"),
        (lambda: data(16, 16) @ data(16, 16), "TENSOR_CORE r0 r0 r2 0", "two loops over output elements"),
        (lambda: data(16, 16) @ data(16, 16), "UPCAST r0 5, TENSOR_CORE r0.0 r1 r2 0", "not tiled yet"),
        (
            lambda: (data(16, 16, 1) + data(1, 16, 16)).float().sum(1),
            "TENSOR_CORE r0 r1 r2 0",
            "expected one sum of products",
        ),
        (
            lambda: (data(16, 16, 16).float() * data(1, 16, 16).float()).sum(2),  # both depend on the columns
            "TENSOR_CORE r0 r1 r2 0",
            "expected one sum of products",
        ),
        (
            lambda: (data(16, 16, 16).float() * data(16, 1, 16).float()).sum(2),  # both depend on the rows
            "TENSOR_CORE r0 r1 r2 0",
            "expected one sum of products",
        ),
        (
            lambda: data(16, 16) @ data(16, 16),
            "LOCAL r0 16, LOCAL r1 16, STAGE r2 LOAD 0, TENSOR_CORE r0.1 r1.1 r2 0",
            "expected",
        ),
        (lambda: data(16, 16) @ data(16, 16), f"{ON_CORE}, TENSOR_CORE r0 r1 r2 0", "expected an axis of"),
        (
            lambda: data(16, 32) @ data(32, 16),
            f"{ON_CORE}, STAGE r0.1.0 REDUCE 0",
            "got one of a tensor core",
        ),
    ],
)
def test_what_does_not_apply_says_why(make, opts, message):
    with pytest.raises(OptError, match=message):
        apply_opts(kernel_of(make()), parse_opts(opts))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (replace(CUDA, tensor_cores=()), "expected a target with mma_m16n8k16_half, got CUDA"),
        (replace(CUDA, workgroups=Workgroups()), "expected subgroups of 32 invocations, got 0"),
        (replace(CUDA, workgroups=Workgroups(16, subgroup=32)), "at most 16 invocations"),
    ],
)
def test_a_target_that_has_it_not_is_named(target, message):
    with pytest.raises(OptError, match=message):
        linear_of(data(32, 32) @ data(32, 32), ON_CORE, target)


# --- what becomes of it


def test_a_subgroup_is_the_first_dimension_of_a_workgroup():
    assert workgroup_of(linear_of(data(64, 64) @ data(64, 64), ON_CORE)) == (32, 1, 1)
    both = f"{ON_CORE}, LOCAL r0.0 4, UPCAST r0.0.1 2, LOCAL r1.0 4"
    assert workgroup_of(linear_of(data(64, 64) @ data(64, 64), both)) in ((32, 2, 4), (32, 4, 2))


def test_the_core_adds_up_and_the_listing_reads_back():
    linear = linear_of(data(32, 32) @ data(32, 32), ON_CORE)
    (wmma,) = [n for n in linear if n.op is Ops.WMMA]
    assert wmma.src[2].op is Ops.LOAD  # of the register
    assert not any(n.op is Ops.ADD and wmma in n.src for n in linear)
    text = render(linear)
    assert render(parse(text)) == text


@pytest.mark.parametrize(
    ("core", "builder", "words"),
    [
        (0, CUDABuilder, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        (1, CUDABuilder, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
        (2, CUDABuilder, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
        (3, MSLBuilder, "simdgroup_matrix<half, 8, 8> a, b;"),
        (4, MSLBuilder, "simdgroup_matrix<bfloat, 8, 8> a, b;"),
        (5, MSLBuilder, "simdgroup_matrix<float, 8, 8> a, b;"),
    ],
)
def test_the_text_of_each(core, builder, words):
    dtype = TENSOR_CORES[core].operands
    target = replace(CUDA, tensor_cores=TENSOR_CORES)
    product = data(32, 32, dtype=dtype) @ data(32, 32, dtype=dtype)
    linear = linear_of(product, ON_CORE.replace("r2 0", f"r2 {core}"), target)
    text = str(emit("k", linear, builder(target, aligned=True)))
    assert words in text and text.count(f"tile0 = {TENSOR_CORES[core].name}(") == 1


# --- what is chosen


def chosen(tensor, target=CUDA):
    return render_opts(choose(kernel_of(tensor, target), target))


def test_a_product_has_its_operands_in_shared_memory():
    assert chosen(data(1024, 1024) @ data(1024, 1024)) == (
        "GLOBAL r0, GLOBAL r1, TENSOR_CORE r0 r1 r2 0, LOCAL r0.0 8, UPCAST r0.0.1 4, LOCAL r1.0 8, "
        "UPCAST r1.0.1 4, SPLIT r2.0 2, STAGE r2.0.1 LOAD 0, STAGE r2.0.1 LOAD 2"
    )


def test_a_small_product_has_no_more_than_it_needs():
    assert chosen(data(16, 32) @ data(32, 8)) == ON_CORE


@pytest.mark.parametrize(
    "make",
    [
        lambda: data(64, 64, dtype="float32") @ data(64, 64, dtype="float32"),
        lambda: data(64, 64) @ data(64, 64, dtype="bfloat16"),
        lambda: data(9, 8) @ data(8, 8),  # of whose blocks little would count
        lambda: data(64, 64).sum(1, dtype="float32"),
        lambda: (data(64, 64, 1) * data(1, 64, 64)).max(1),
    ],
)
def test_others_are_not_on_cores(make):
    assert "TENSOR_CORE" not in chosen(make())


def test_blocks_overlap_where_sizes_are_no_multiples():
    linear = linear_of(data(20, 24) @ data(24, 9))
    stores = [n for n in linear if n.op is Ops.STORE and n.src[1].dtype is dtypes.float16]
    assert all(len(n.src[0].src) == 3 for n in stores)  # rows and columns that no block before has
    (wmma,) = [n for n in linear if n.op is Ops.WMMA]
    assert [n.op for n in wmma.src[:2]] == [Ops.WHERE, Ops.WHERE]  # terms that were counted before are 0


def test_few_rows_are_better_few_columns():
    assert "TENSOR_CORE r1 r0 r2 0" in chosen(data(8, 256) @ data(256, 256))
    assert "TENSOR_CORE r0 r1 r2 0" in chosen(data(16, 256) @ data(256, 256))


# --- what a search tries


def test_neighbours_add_take_away_and_change_a_core():
    """Each is a kernel that can be written, or an OptError says why not."""
    target = replace(CUDA, tensor_cores=TENSOR_CORES[:2])
    kernel = kernel_of(data(32, 32) @ data(32, 16))
    tried = set()
    for opts in (choose(kernel, target), (), parse_opts("GLOBAL r0, GLOBAL r1"), parse_opts(ON_CORE)):
        for sequence, made in neighbours(kernel, opts, target):
            tried.add(render_opts(sequence))
            try:
                linear = run_passes(made, LoweringContext(target), after="optimize")
            except OptError:
                continue
            emit("k", linear, CUDABuilder(target, aligned=True))
    assert {ON_CORE, f"{ON_CORE}, LOCAL r1.0 2", f"{ON_CORE}, UPCAST r1.0 2", "GLOBAL r0, GLOBAL r1"} <= tried
    assert "GLOBAL r0, GLOBAL r1, TENSOR_CORE r1 r0 r2 0" in tried
    assert not any("TENSOR_CORE r0 r1 r2 1" in text for text in tried)  # the core of bfloat16


# --- the kernels of whole graphs


def on_cores(*tensors, target=CUDA):
    """How many kernels of a graph are on tensor cores, and how many others have a sum of products."""
    counts = [0, 0]
    for call in arranged(*tensors, target=target):
        linear = run_passes(call.ast.replace(arg=None), LoweringContext(target))
        kernel = run_passes(call.ast.replace(arg=None), LoweringContext(target), through=UNOPTIMIZED)
        products = [n for n in kernel.toposort() if n.op is Ops.REDUCE and n.src[0].op is Ops.MUL]
        counts[0] += any(n.op is Ops.WMMA for n in linear)
        counts[1] += bool(products) and not any(n.op is Ops.WMMA for n in linear)
    return tuple(counts)


def gradients(function, *inputs):
    for x in inputs:
        x.requires_grad = True
    function(*inputs).float().square().sum().backward()
    return [x.grad for x in inputs]


def heads():
    return [data(2, 4, 60, 32) for _ in range(3)]


FORMS = {
    "a @ b.T": (lambda: [data(128, 96) @ data(64, 96).T], 1),
    "a.T @ b": (lambda: [data(96, 128).T @ data(96, 64)], 1),
    "a batch": (lambda: [data(6, 50, 30) @ data(6, 30, 70)], 1),
    "a batch and one matrix": (lambda: [data(6, 50, 30) @ data(30, 70)], 1),
    "einsum": (lambda: [Tensor.einsum("bij,bkj->bik", data(4, 64, 40), data(4, 72, 40))], 1),
    "a vocabulary": (lambda: [data(60, 64) @ data(5003, 64).T], 1),
    "linear, bias, gelu": (lambda: [(data(4, 60, 128) @ data(256, 128).T + data(256)).gelu()], 1),
    "two layers": (lambda: [(data(60, 128) @ data(128, 200)).gelu() @ data(200, 128)], 2),
    "attention": (lambda: [Tensor.scaled_dot_product_attention(*heads())], 2),
    "causal attention": (lambda: [Tensor.scaled_dot_product_attention(*heads(), is_causal=True)], 2),
    "convolution": (lambda: [data(2, 16, 18, 18).conv2d(data(32, 16, 3, 3))], 1),
    "convolution, padded": (lambda: [data(2, 16, 16, 16).conv2d(data(32, 16, 3, 3), padding=1)], 1),
    "convolution, strided": (lambda: [data(2, 16, 19, 19).conv2d(data(32, 16, 3, 3), stride=2)], 1),
    "convolution, 1 x 1": (lambda: [data(2, 24, 15, 15).conv2d(data(40, 24, 1, 1))], 1),
    "product backward": (lambda: gradients(lambda a, b: a @ b, data(60, 64), data(64, 72)), 3),
    "linear backward": (
        lambda: gradients(lambda x, w, b: (x @ w.T + b).gelu(), data(60, 128), data(256, 128), data(256)),
        3,
    ),
    "attention backward": (lambda: gradients(Tensor.scaled_dot_product_attention, *heads()), 6),
    "convolution backward": (
        lambda: gradients(lambda x, w: x.conv2d(w, padding=1), data(2, 16, 16, 16), data(32, 16, 3, 3)),
        2,
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_products_of_a_graph_are_on_cores(form):
    make, count = FORMS[form]
    done, others = on_cores(*make())
    assert done == count
    # of attention's softmax, the gradient has a sum of products along a row: of vectors
    assert others == (1 if form == "attention backward" else 0)


def test_the_first_core_that_takes_a_product_is_used():
    product = data(64, 64, dtype="bfloat16") @ data(64, 64, dtype="bfloat16")
    assert "TENSOR_CORE r0 r1 r2 1" in chosen(product)
    assert "TENSOR_CORE" not in chosen(product, replace(CUDA, tensor_cores=(TENSOR_CORES[0],)))
    float32 = data(64, 64, dtype="float32") @ data(64, 64, dtype="float32")
    assert "TENSOR_CORE r0 r1 r2 2" in chosen(float32, replace(CUDA, tensor_cores=(TENSOR_CORES[2],)))
