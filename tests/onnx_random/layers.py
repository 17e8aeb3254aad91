"""Products, windows, reductions, norms, sorting and gathering of random graphs."""

from __future__ import annotations

import math

from onnx_random.maker import Known, Maker, Unfit, rule

# --- reductions

EXACT_REDUCTIONS = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1")
REDUCTIONS = (*EXACT_REDUCTIONS, "ReduceMean", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")


def reduced(shape: tuple[int, ...], axes: list[int], keep: int) -> tuple[int, ...]:
    return tuple([1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes])


@rule(4)
def reduction(m: Maker) -> None:
    op = m.rng.choice(REDUCTIONS)
    x = m.floats(1, ("float32", "float64"), 50)
    axes, keep = sorted(m.rng.sample(range(x.rank), m.rng.randint(1, x.rank))), m.rng.randrange(2)
    most = x.most * x.most * x.count if op == "ReduceSumSquare" else x.most * x.count + 10
    exact = x.exact and op in EXACT_REDUCTIONS
    given = [a - x.rank if m.rng.random() < 0.3 else a for a in axes]
    result = (x.dtype, reduced(x.shape, axes, keep), most, exact)
    m.add(op, [x.name, m.constant(given)], result, keepdims=keep)


@rule()
def whole_reduction(m: Maker) -> None:
    x = m.pick(lambda v: v.dtype in ("int32", "int64") and v.rank > 0 and v.count > 0)
    op, axis, keep = (
        m.rng.choice(("ReduceSum", "ReduceMax", "ReduceMin")),
        m.rng.randrange(x.rank),
        m.rng.randrange(2),
    )
    result = (x.dtype, reduced(x.shape, [axis], keep), x.most * x.count, True)
    m.add(op, [x.name, m.constant([axis])], result, keepdims=keep)


@rule()
def extreme_position(m: Maker) -> None:
    x = m.pick(lambda v: v.exact and v.dtype in ("float32", "int32") and v.rank > 0 and v.count > 0)
    axis, keep = m.rng.randrange(x.rank), m.rng.randrange(2)
    result = ("int64", reduced(x.shape, [axis], keep), x.shape[axis], True)
    last = m.rng.randrange(2)
    m.add(
        m.rng.choice(("ArgMax", "ArgMin")), [x.name], result, axis=axis, keepdims=keep, select_last_index=last
    )


@rule()
def running_sum(m: Maker) -> None:
    x = m.floats(1, ("float32", "float64"), 50)
    axis = m.rng.randrange(x.rank)
    flags = {"exclusive": m.rng.randrange(2), "reverse": m.rng.randrange(2)}
    m.add("CumSum", [x.name, m.constant(axis)], (x.dtype, x.shape, x.most * x.shape[axis], x.exact), **flags)


@rule(2)
def softmax(m: Maker) -> None:
    x = m.floats(1, most=1e3)
    op = m.rng.choice(("Softmax", "LogSoftmax"))
    most = 1 if op == "Softmax" else 2 * x.most + 10
    m.add(op, [x.name], (x.dtype, x.shape, most, False), axis=m.rng.randint(-x.rank, x.rank - 1))


@rule()
def hardmax(m: Maker) -> None:
    x = m.pick(lambda v: v.exact and v.dtype == "float32" and v.rank > 0 and v.count > 0)
    m.add("Hardmax", [x.name], (x.dtype, x.shape, 1, True), axis=m.rng.randrange(x.rank))


@rule()
def top(m: Maker) -> None:
    x = m.pick(lambda v: v.exact and v.dtype == "float32" and v.rank > 0 and v.count > 0)
    axis = m.rng.randrange(x.rank)
    k = m.rng.randint(1, x.shape[axis])
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    results = (x.dtype, shape, x.most, True), ("int64", shape, x.shape[axis], True)
    m.add("TopK", [x.name, m.constant([k])], *results, axis=axis, largest=m.rng.randrange(2))


# --- gathering


@rule(2)
def gather(m: Maker) -> None:
    x = m.pick(lambda v: v.rank > 0 and v.count > 0 and v.dtype != "uint8")
    axis = m.rng.randrange(x.rank)
    shape = tuple([m.rng.choice((1, 2, 3)) for _ in range(m.rng.randint(0, 2))])
    places = m.constant(m.array(shape, "int64", True) % x.shape[axis] - m.rng.choice((0, x.shape[axis])))
    m.add(
        "Gather",
        [x.name, places],
        (x.dtype, (*x.shape[:axis], *shape, *x.shape[axis + 1 :]), x.most, x.exact),
        axis=axis,
    )


@rule()
def gather_elements(m: Maker) -> None:
    x = m.pick(lambda v: v.rank > 0 and v.count > 0 and v.dtype in ("float32", "int64"))
    axis = m.rng.randrange(x.rank)
    shape = (*x.shape[:axis], m.rng.randint(1, 4), *x.shape[axis + 1 :])
    places = m.constant(m.array(shape, "int64", True) % x.shape[axis])
    m.add("GatherElements", [x.name, places], (x.dtype, shape, x.most, x.exact), axis=axis)


@rule()
def scatter(m: Maker) -> None:
    x = m.pick(lambda v: v.rank > 0 and v.count > 0 and v.dtype == "float32")
    axis = m.rng.randrange(x.rank)
    reduce = m.rng.choice(("none", "add", "max", "min"))
    count = m.rng.randint(1, x.shape[axis])
    places = list(range(x.shape[axis]))
    m.rng.shuffle(places)  # without "none" having two writers
    rows = [places[i] for i in range(count)]
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    line = m.array((1,), "int64", True).repeat(count)
    line[:] = rows
    index = (
        line.reshape([count if i == axis else 1 for i in range(x.rank)]) + m.array(shape, "int64", True) * 0
    )
    names = [x.name, m.constant(index), m.random_constant(shape, whole=x.exact)]
    m.add("ScatterElements", names, (x.dtype, x.shape, x.most + 4, x.exact), axis=axis, reduction=reduce)


@rule()
def one_hot(m: Maker) -> None:
    x = m.pick(lambda v: v.dtype == "int64" and 0 < v.rank < 4)
    depth, axis = m.rng.randint(1, 5), m.rng.randint(-x.rank - 1, x.rank)
    at = axis % (x.rank + 1)
    names = [x.name, m.constant(depth), m.constant([0, 1], "float32")]
    m.add("OneHot", names, ("float32", (*x.shape[:at], depth, *x.shape[at:]), 1, True), axis=axis)


# --- products


@rule(3)
def product(m: Maker) -> None:
    a = m.floats(2, ("float32", "float64"), 100)
    n = m.rng.randint(1, 6)
    b = m.random_constant((a.shape[-1], n), a.dtype, a.exact)
    m.add("MatMul", [a.name, b], (a.dtype, (*a.shape[:-1], n), 4 * a.most * a.shape[-1], a.exact))


@rule(2)
def product_of_two(m: Maker) -> None:
    a = m.floats(2, most=50)
    b = m.pick(lambda v: v.dtype == a.dtype and v.rank >= 2 and v.shape[-2] == a.shape[-1] and v.most <= 50)
    try:
        batch = tuple(
            [max(p, q) for p, q in zip(_lead(a, b), _lead(b, a)) if p == q or 1 in (p, q) or _unfit()]
        )
    except Unfit:
        raise
    shape = (*batch, a.shape[-2], b.shape[-1])
    m.add("MatMul", [a.name, b.name], (a.dtype, shape, a.most * b.most * a.shape[-1], a.exact and b.exact))


def _lead(x: Known, other: Known) -> tuple[int, ...]:
    return (1,) * max(other.rank - x.rank, 0) + x.shape[:-2]


def _unfit() -> bool:
    raise Unfit


@rule(2)
def gemm(m: Maker) -> None:
    a = m.pick(lambda v: v.rank == 2 and v.dtype == "float32" and v.most <= 100 and v.count > 0)
    ta, tb, n = m.rng.randrange(2), m.rng.randrange(2), m.rng.randint(1, 6)
    rows, k = (a.shape[1], a.shape[0]) if ta else a.shape
    b = m.random_constant((n, k) if tb else (k, n), whole=a.exact)
    c = m.random_constant(m.rng.choice(((n,), (1, n), (rows, 1), ())), whole=a.exact)
    flags = {"transA": ta, "transB": tb, "alpha": m.rng.choice((1.0, 2.0)), "beta": m.rng.choice((1.0, 0.0))}
    m.add("Gemm", [a.name, b, c], (a.dtype, (rows, n), 8 * a.most * k + 4, a.exact), **flags)


@rule()
def einsum(m: Maker) -> None:
    a = m.pick(lambda v: v.rank == 3 and v.dtype == "float32" and v.most <= 100 and v.count > 0)
    b = m.random_constant((a.shape[1], 3))
    m.add(
        "Einsum",
        [a.name, b],
        (a.dtype, (3, a.shape[0], a.shape[2]), 4 * a.most * a.shape[1], False),
        equation="bij,ik->kbj",
    )


# --- windows


@rule(2)
def to_pictures(m: Maker) -> None:
    """Four axes, for what works on windows."""
    x = m.pick(lambda v: v.dtype == "float32" and v.count >= 8)
    channels = m.rng.choice([d for d in (1, 2, 3, 4) if x.count % d == 0])
    height = m.rng.choice([d for d in range(1, x.count // channels + 1) if x.count // channels % d == 0])
    shape = (1, channels, height, x.count // channels // height)
    m.add("Reshape", [x.name, m.constant(shape)], (x.dtype, shape, x.most, x.exact))


def pictures(m: Maker, most: float = 100) -> Known:
    return m.pick(lambda v: v.rank == 4 and v.dtype == "float32" and v.most <= most and v.count > 0)


def windows(m: Maker, x: Known) -> tuple[list[int], list[int], list[int], list[int], tuple[int, int]]:
    """Window, strides, dilations, pads and how many windows there are on each axis. Raises Unfit."""
    kernel = [m.rng.choice((1, 2, 3)) for _ in range(2)]
    strides, dilations = [m.rng.choice((1, 2)) for _ in range(2)], [m.rng.choice((1, 1, 2)) for _ in range(2)]
    pads = [m.rng.randint(0, k - 1) for k in kernel * 2]
    sizes = []
    for n, k, s, d, low, high in zip(x.shape[2:], kernel, strides, dilations, pads[:2], pads[2:]):
        span = n + low + high - d * (k - 1) - 1
        if span < 0:
            raise Unfit
        sizes.append(span // s + 1)
    return kernel, strides, dilations, pads, (sizes[0], sizes[1])


@rule(3)
def convolution(m: Maker) -> None:
    x = pictures(m)
    kernel, strides, dilations, pads, sizes = windows(m, x)
    group = m.rng.choice([g for g in (1, 2, x.shape[1]) if x.shape[1] % g == 0])
    out = group * m.rng.choice((1, 2))
    w = m.random_constant((out, x.shape[1] // group, *kernel), whole=x.exact)
    names = [x.name, w] + ([m.random_constant((out,), whole=x.exact)] if m.rng.random() < 0.5 else [])
    most = 4 * x.most * x.shape[1] * math.prod(kernel) + 4
    result = (x.dtype, (x.shape[0], out, *sizes), most, x.exact)
    m.add("Conv", names, result, strides=strides, dilations=dilations, pads=pads, group=group)


@rule()
def transposed_convolution(m: Maker) -> None:
    x = pictures(m)
    kernel, strides = [m.rng.choice((1, 2, 3)) for _ in range(2)], [m.rng.choice((1, 2)) for _ in range(2)]
    out = m.rng.choice((1, 2))
    pads = [m.rng.randint(0, (k - 1) // 2) for k in kernel]
    sizes = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(x.shape[2:], strides, kernel, pads)]
    if min(sizes) < 1:
        raise Unfit
    w = m.random_constant((x.shape[1], out, *kernel), whole=x.exact)
    most = 4 * x.most * x.shape[1] * math.prod(kernel)
    result = (x.dtype, (x.shape[0], out, *sizes), most, x.exact)
    m.add("ConvTranspose", [x.name, w], result, strides=strides, pads=[*pads, *pads])


@rule(2)
def pooling(m: Maker) -> None:
    x = pictures(m, 1e4)
    kernel, strides, dilations, pads, sizes = windows(m, x)
    for n, k, stride, d, low, count in zip(x.shape[2:], kernel, strides, dilations, pads[:2], sizes):
        taps = [{stride * i - low + d * t for t in range(k)} for i in range(count)]
        if not all(window & set(range(n)) for window in taps):  # the maximum of nothing
            raise Unfit
    op = m.rng.choice(("MaxPool", "AveragePool"))
    more = {"count_include_pad": m.rng.randrange(2)} if op == "AveragePool" else {}
    result = (x.dtype, (*x.shape[:2], *sizes), x.most, x.exact and op == "MaxPool")
    m.add(op, [x.name], result, kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, **more)


@rule()
def whole_pooling(m: Maker) -> None:
    x = pictures(m, 1e4)
    op = m.rng.choice(("GlobalAveragePool", "GlobalMaxPool"))
    m.add(op, [x.name], (x.dtype, (*x.shape[:2], 1, 1), x.most, x.exact and op == "GlobalMaxPool"))


@rule()
def blocks(m: Maker) -> None:
    x = pictures(m, 1e5)
    n, c, h, w = x.shape
    if c % 4 == 0:
        mode = m.rng.choice(("DCR", "CRD"))
        m.add(
            "DepthToSpace",
            [x.name],
            (x.dtype, (n, c // 4, 2 * h, 2 * w), x.most, x.exact),
            blocksize=2,
            mode=mode,
        )
    elif h % 2 == 0 and w % 2 == 0:
        m.add("SpaceToDepth", [x.name], (x.dtype, (n, 4 * c, h // 2, w // 2), x.most, x.exact), blocksize=2)
    else:
        raise Unfit


@rule()
def resize(m: Maker) -> None:
    x = pictures(m, 1e4)
    mode = m.rng.choice(("nearest", "linear"))
    sizes = (*x.shape[:2], m.rng.randint(1, 2 * x.shape[2]), m.rng.randint(1, 2 * x.shape[3]))
    flags = {"coordinate_transformation_mode": m.rng.choice(("half_pixel", "asymmetric", "align_corners"))}
    if mode == "nearest":  # a quotient that rounding decides differs between right implementations
        sizes = (*x.shape[:2], 2 * x.shape[2], 2 * x.shape[3])
        flags = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    result = (x.dtype, sizes, x.most, x.exact and mode == "nearest")
    m.add("Resize", [x.name, "", "", m.constant(sizes)], result, mode=mode, **flags)


# --- norms


@rule(2)
def norm_of_channels(m: Maker) -> None:
    x = pictures(m)
    c = x.shape[1]
    scale, bias = m.random_constant((c,)), m.random_constant((c,))
    op = m.rng.choice(("BatchNormalization", "InstanceNormalization", "GroupNormalization"))
    if op == "BatchNormalization":
        mean, variance = m.random_constant((c,)), m.constant([0.5 + i for i in range(c)], "float32")
        m.add(op, [x.name, scale, bias, mean, variance], (x.dtype, x.shape, 4 * x.most + 10, False))
        return
    if x.count // c < 4:  # of one element, a norm is the rounding error
        raise Unfit
    more = {"num_groups": m.rng.choice([g for g in (1, 2, c) if c % g == 0])} if op[0] == "G" else {}
    m.add("Tanh", [x.name], (x.dtype, x.shape, 1, False))
    m.add(op, [m.values[-1].name, scale, bias], (x.dtype, x.shape, 20, False), epsilon=0.01, **more)


@rule(2)
def norm_of_rows(m: Maker) -> None:
    x = m.floats(2, most=100)
    axis = m.rng.randint(1, x.rank - 1)
    names = [m.random_constant(x.shape[axis:]) for _ in range(2)]
    m.add("Tanh", [x.name], (x.dtype, x.shape, 1, False))
    m.add(
        "LayerNormalization",
        [m.values[-1].name, *names],
        (x.dtype, x.shape, 50, False),
        axis=axis,
        epsilon=0.01,
    )


@rule()
def norm_of_neighbours(m: Maker) -> None:
    x = pictures(m)
    m.add("LRN", [x.name], (x.dtype, x.shape, x.most, False), size=m.rng.choice((1, 3)), alpha=0.01)


@rule()
def lp_norm(m: Maker) -> None:
    x = m.floats(2, most=100)
    m.add("Sigmoid", [x.name], (x.dtype, x.shape, 1, False))
    m.add("Add", [m.values[-1].name, m.constant(0.5, x.dtype)], (x.dtype, x.shape, 2, False))
    axis = m.rng.randrange(x.rank)
    m.add(
        "LpNormalization",
        [m.values[-1].name],
        (x.dtype, x.shape, 1, False),
        axis=axis,
        p=m.rng.choice((1, 2)),
    )
