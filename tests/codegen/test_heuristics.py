"""What the heuristics decide: which loops are divided, which are in lanes, how large register tiles are."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from polygrad import Device, Tensor
from polygrad.codegen.opts import cost
from polygrad.codegen.opts.heuristics import choose
from polygrad.codegen.opts.opt import Opt, OptKind
from polygrad.codegen.target import Target
from tests.codegen.test_split import TARGET, ast_of, empty


def chosen(out: Tensor, kind: OptKind) -> list[Opt]:
    return [o for o in choose(ast_of(out), TARGET) if o.kind is kind]


def test_a_concatenation_is_divided_where_its_operands_meet() -> None:
    (opt,) = chosen(empty(64, 300).cat(empty(64, 411), dim=1) * 2, OptKind.PARTITION)
    assert opt.numbers == (300,)


def test_a_padded_row_is_divided_at_both_ends() -> None:
    (opt,) = chosen(empty(64, 300).pad((2, 5)).contiguous(), OptKind.PARTITION)
    assert opt.numbers == (2, 302)


def test_a_loop_inside_of_which_rows_are_summed_up_is_not_divided() -> None:
    """Both parts would compute the maxima and the sums."""
    rows = empty(64, 300).cat(empty(64, 411), dim=1)
    assert not chosen(rows.softmax(1), OptKind.PARTITION)
    assert not chosen(rows - rows.max(1, keepdim=True), OptKind.PARTITION)


@pytest.mark.parametrize(
    ("shape", "repeats", "expected"),
    [
        ((50, 30), (1, 3), [30]),
        ((50, 30), (2, 3), [30, 50]),
        ((50, 30), (2, 1), [50]),
        ((50, 3), (1, 30), []),
    ],
)
def test_what_is_repeated_goes_in_blocks_of_a_period(
    shape: tuple[int, ...], repeats: tuple[int, ...], expected: list[int]
) -> None:
    """Unless a period is less than a SIMD value."""
    opts = chosen(empty(*shape).repeat(*repeats) + 1, OptKind.SPLIT)
    assert sorted(o.numbers[0] for o in opts) == expected


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("repeats", [(1, 3), (2, 3), (2, 1)])
def test_repetitions_are_numpy_s(repeats: tuple[int, ...], device: str) -> None:
    x = np.random.default_rng(0).standard_normal((50, 30)).astype(np.float32)
    np.testing.assert_array_equal(
        (Tensor(x, device=device).repeat(*repeats) + 1).numpy(), np.tile(x, repeats) + 1
    )


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_softmax_of_a_concatenation_within_1e_6(device: str) -> None:
    a, b = (np.random.default_rng(i).standard_normal((5, 30 + i)).astype(np.float32) for i in range(2))
    got = Tensor(a, device=device).cat(Tensor(b, device=device), dim=1).softmax(1).numpy()
    e = np.exp(np.concatenate([a, b], 1))
    np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-6)


def depthwise(channels: int, taps: int) -> Tensor:
    """A depthwise convolution with stride 2, of an operand that needs no padding."""
    x, w = empty(channels, 56 + taps, 56 + taps), empty(channels, 1, taps, taps)
    return x.unsqueeze(0).conv2d(w, stride=2, groups=channels)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_few_terms_of_a_sum_do_not_fill_lanes(device: str) -> None:
    """Of five taps, the second SIMD value of four lanes would repeat three."""
    opts = choose(ast_of(depthwise(8, 5)), Device.backend(device).target)
    (simd,) = (o for o in opts if o.kind is OptKind.SIMD)
    assert simd.axes == ((2,),)  # columns of the output


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize(("taps", "unrolled"), [(2, [2, 2]), (3, [3, 3]), (5, [])])
def test_a_small_window_of_a_depthwise_convolution_with_a_stride_is_unrolled_whole(
    device: str, taps: int, unrolled: list[int]
) -> None:
    """Its elements are in the same blocks of memory. A large one takes more registers than there are."""
    opts = choose(ast_of(depthwise(8, taps)), Device.backend(device).target)
    assert [o.numbers[0] for o in opts if o.kind is OptKind.UNROLL] == unrolled


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_windows_that_share_their_image_or_lie_next_to_each_other_are_in_register_tiles(device: str) -> None:
    target = Device.backend(device).target
    image = empty(1, 8, 59, 59)
    shared = choose(ast_of(image.conv2d(empty(16, 8, 3, 3), stride=2)), target)
    neighbours = choose(ast_of(image.conv2d(empty(8, 1, 3, 3), groups=8)), target)
    for opts in (shared, neighbours):
        assert any(o.kind is OptKind.UPCAST for o in opts)
        assert not any(o.kind is OptKind.UNROLL for o in opts)


@pytest.mark.parametrize("groups", [1, 8])
def test_rows_of_windows_that_look_beyond_an_image_are_apart_where_nothing_shares_an_element(
    groups: int,
) -> None:
    """A product of many channels asks once for many multiplications."""
    x, w = empty(1, 8, 56, 56), empty(8, 8 // groups, 3, 3)
    divided = {
        o.axes[0][0] for o in chosen(x.conv2d(w, stride=2, padding=1, groups=groups), OptKind.PARTITION)
    }
    rows = 1
    assert (rows in divided) == (groups == 8)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize(
    ("height", "width", "taps", "stride", "padding", "dilation"),
    [(56, 56, 3, 2, 1, 1), (37, 41, 3, 2, 0, 1), (33, 50, 2, 2, 1, 1), (40, 40, 3, 3, 1, 1),
     (39, 44, 3, 2, 2, 2), (9, 70, 3, 4, 1, 1), (20, 7, 3, 2, 1, 1), (30, 30, 5, 2, 2, 1)],
)  # fmt: skip
def test_depthwise_convolutions_with_a_stride_are_exact(
    device: str, dtype: str, height: int, width: int, taps: int, stride: int, padding: int, dilation: int
) -> None:
    """Of small integers, which no dtype rounds."""
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (2, 6, height, width))
    w = rng.integers(-4, 5, (6, 1, taps, taps))
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": 6}
    got = Tensor(x.astype(dtype), device=device).conv2d(Tensor(w.astype(dtype), device=device), **settings)
    beyond = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    reach = dilation * (taps - 1) + 1
    windows = np.lib.stride_tricks.sliding_window_view(beyond, (reach, reach), axis=(2, 3))
    windows = windows[:, :, ::stride, ::stride, ::dilation, ::dilation]
    expected = np.einsum("nchwij,cij->nchw", windows, w[:, 0])
    np.testing.assert_array_equal(got.numpy(), expected.astype(dtype))


def test_a_sum_over_loops_that_go_through_memory_in_order_has_one_loop() -> None:
    image = empty(8, 64, 56, 56)
    (merged,) = chosen(image.mean((0, 2, 3)), OptKind.MERGE)
    assert merged.axes == ((2,), (3,))  # rows and columns, not images
    assert not chosen(image[:, :, :, :50].mean((0, 2, 3)), OptKind.MERGE)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_a_mean_of_each_channel_within_1e_6(device: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, 7, 9)).astype(np.float32)
    got = Tensor(x, device=device).mean((0, 2, 3)).numpy()
    np.testing.assert_allclose(got, x.mean((0, 2, 3), dtype=np.float64), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("simd_bytes", "registers", "expected"),
    [(16, 15, (2, 2, 4)), (32, 16, (2, 2, 4)), (64, 32, (4, 1, 4))],
)
def test_long_bodies_have_as_many_values_side_by_side_as_registers_hold(
    simd_bytes: int, registers: int, expected: tuple[int, ...]
) -> None:
    target = Target("test", simd_bytes=simd_bytes, registers=registers, fma=True, scalar_fma=True)
    x = empty(4096)
    for out, count in zip((x.log() * x.pow(x), x.exp2().tanh(), x + 1), expected, strict=True):
        (simd,) = (o for o in choose(ast_of(out), target) if o.kind is OptKind.SIMD)
        assert simd.numbers == (simd_bytes // 4, count)


@pytest.mark.parametrize("size", [1, 4, 7, 8, 9, 1001])
def test_values_side_by_side_are_those_of_one_at_a_time(size: int) -> None:
    """The same bits, whatever is left at the end of a row."""
    data = np.linspace(-3, 50, 3 * size).astype(np.float32)

    def computed(part: np.ndarray) -> np.ndarray:
        x = Tensor(part, device="WASM")
        return (x.sin() + (x * x + 1).log().exp2()).tanh().numpy()

    several = computed(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "INTERLEAVED", 1)
        single = np.concatenate([computed(part) for part in np.split(data, 3)])
    np.testing.assert_array_equal(several, single)


def test_a_long_sum_fills_lanes() -> None:
    opts = choose(ast_of(empty(64, 1024).sum(1)), Device.backend("WASM").target)
    (simd,) = (o for o in opts if o.kind is OptKind.SIMD)
    assert simd.axes == ((1,),)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_a_register_tile_leaves_room_for_vectors_that_are_made_of_blocks(device: str) -> None:
    target = Device.backend(device).target
    opts = choose(ast_of(depthwise(8, 3)), target)
    sums = math.prod(o.numbers[-1] for o in opts if o.kind in (OptKind.SIMD, OptKind.UPCAST))
    assert sums * (1 + cost.STRIDED_REGISTERS) < target.registers


def test_a_row_that_is_kept_is_not_filled_by_a_block_that_crosses_rows(
    default_device: None, device: str
) -> None:
    """The row is loaded along the loop that it is inside of: only its own loops have tiles. Within 1e-4."""
    rng = np.random.default_rng(0)
    shapes = ((32, 64, 50), (64,), (32, 50, 64))
    x, g, h = (Tensor(rng.standard_normal(s).astype(np.float32)).realize() for s in shapes)

    def gradient(t: Tensor) -> np.ndarray:
        return ((h * g - (h * g * t).sum(-1, keepdim=True) * t) * 0.5).numpy()

    gelu = x.transpose(1, 2).gelu(approximate="none")
    expected = gradient(gelu.contiguous().realize())
    assert np.abs(gradient(gelu) - expected).max() < 1e-4 * np.abs(expected).max()


def test_a_product_of_one_row_reads_its_matrix_as_one_stream() -> None:
    """No tile of rows of the matrix, each of which would be a stream; several sums of one row instead."""
    product = empty(1, 768).linear(empty(3000, 768).transpose())
    opts = choose(ast_of(product), TARGET)
    assert [(o.kind, o.numbers) for o in opts] == [(OptKind.SIMD, (16, cost.STREAMED))]


@pytest.mark.parametrize(("rows", "streamed"), [(3000, True), (256, False)])
def test_with_few_registers_a_matrix_is_a_stream_if_it_comes_from_memory(rows: int, streamed: bool) -> None:
    target = replace(TARGET, simd_bytes=16, registers=15)
    opts = choose(ast_of(empty(1, 768).linear(empty(rows, 768).transpose())), target)
    assert bool([o for o in opts if o.kind is OptKind.UPCAST]) != streamed
    (simd,) = (o.numbers for o in opts if o.kind is OptKind.SIMD)
    assert simd == ((4, cost.STREAMED) if streamed else (4, 2))


def test_short_blocks_of_a_streamed_sum_are_unrolled_with_their_parts() -> None:
    """Sums of 16 are one SIMD value each: two of them, of both parts of a block, go side by side."""
    x, w = empty(1, 48, 2, 16), empty(3000, 48, 2, 16)
    w = w + empty(3000, 48).reshape(3000, 48, 1, 1)  # so that blocks stay loops of their own
    opts = choose(ast_of((x * w).sum((1, 2, 3))), TARGET)
    assert math.prod(o.numbers[-1] for o in opts if o.kind in (OptKind.SIMD, OptKind.UNROLL)) == 2
    assert not [o for o in opts if o.kind is OptKind.UPCAST]


def test_rows_that_share_a_matrix_are_a_tile() -> None:
    """Of eight rows, as many as registers hold use each element that was loaded."""
    product = empty(8, 768).linear(empty(3000, 768).transpose())
    opts = choose(ast_of(product), TARGET)
    assert [o for o in opts if o.kind is OptKind.UPCAST]


@pytest.mark.parametrize(("terms", "vectors"), [(300, 8), (30, 4)])
def test_sums_over_many_rows_read_two_cache_lines_of_each(terms: int, vectors: int) -> None:
    target = replace(TARGET, simd_bytes=16, registers=15)
    assert 8 * target.simd_bytes == cost.FAR_BYTES
    assert choose(ast_of(empty(terms, 300).sum(0)), target) == (Opt(OptKind.SIMD, ((0,),), (4, vectors)),)


@pytest.mark.parametrize(("terms", "lanes"), [(300, 0), (30, 1)])
def test_lanes_go_along_the_longer_of_many_rows(terms: int, lanes: int) -> None:
    """Scalars that lie so far apart would first be copied to a panel."""
    target = replace(TARGET, simd_bytes=16, registers=15)
    opts = choose(ast_of(empty(terms, 300).T @ empty(terms, 16)), target)
    assert [o.axes for o in opts if o.kind is OptKind.SIMD] == [((lanes,),)]


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((25, 68, 71), (5, 5)),
        ((31, 50, 37), (3, 8)),
        ((60, 90, 80), (5, 5)),
        ((63, 90, 96), (3, 9)),
        ((60, 90, 90), (2, 12)),
    ],
)
def test_a_product_of_short_rows_has_them_in_one_tile(shape: tuple[int, ...], tile: tuple[int, int]) -> None:
    """Unless narrower tiles of more rows leave no more unused."""
    m, k, n = shape
    opts = choose(ast_of(empty(m, k) @ empty(k, n)), TARGET)
    (columns,) = [o.numbers[1] for o in opts if o.kind is OptKind.SIMD]
    (rows,) = [o.numbers[0] for o in opts if o.kind is OptKind.UPCAST]
    assert (columns, rows) == tile


def test_a_short_row_is_in_one_tile() -> None:
    for n, tile in ((52, (16, 4)), (81, (16, 6)), (100, (16, 2))):
        (opt,) = chosen(empty(6, 5, n).permute(1, 0, 2).contiguous(), OptKind.SIMD)
        assert opt.numbers == tile


@pytest.mark.parametrize("device", ["CPU", "CC", "WASM"])
def test_an_operand_that_lies_across_is_copied_for_whole_rows_too(device: str) -> None:
    """The columns of a product that are rows in memory: they are read in blocks, and transposed."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((200, 300), (37, 300)))
    stages = chosen(empty(200, 300) @ empty(37, 300).T, OptKind.STAGE)
    assert [o.axes for o in stages] == [((2,),)]
    got = Tensor(x, device=device) @ Tensor(w, device=device).T
    np.testing.assert_allclose(got.numpy(), x @ w.T, rtol=1e-4, atol=1e-4)
