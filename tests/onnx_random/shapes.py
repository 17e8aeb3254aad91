"""Operations of random graphs that move elements."""

from __future__ import annotations

import math

from onnx_random.maker import Maker, Unfit, rule


@rule(3)
def reshape(m: Maker) -> None:
    x = m.pick(lambda v: True)
    sizes, left = [], x.count
    while left > 1 and len(sizes) < 3:
        divisor = m.rng.choice([d for d in range(1, left + 1) if left % d == 0])
        sizes.append(divisor)
        left //= divisor
    shape = (*sizes, left) if left > 1 or not sizes else tuple(sizes)
    said = list(shape)
    if m.rng.random() < 0.5 and x.count:
        said[m.rng.randrange(len(said))] = -1
    m.add("Reshape", [x.name, m.constant(said)], (x.dtype, shape, x.most, x.exact))


@rule(3)
def transpose(m: Maker) -> None:
    x = m.pick(lambda v: v.rank > 1)
    order = m.rng.sample(range(x.rank), x.rank)
    m.add("Transpose", [x.name], (x.dtype, tuple(x.shape[i] for i in order), x.most, x.exact), perm=order)


@rule(2)
def unsqueeze(m: Maker) -> None:
    x = m.pick(lambda v: v.rank < 4)
    axis = m.rng.randint(-x.rank - 1, x.rank)
    at = axis % (x.rank + 1)
    m.add(
        "Unsqueeze",
        [x.name, m.constant([axis])],
        (x.dtype, (*x.shape[:at], 1, *x.shape[at:]), x.most, x.exact),
    )


@rule()
def squeeze(m: Maker) -> None:
    x = m.pick(lambda v: 1 in v.shape)
    at = m.rng.choice([i for i, n in enumerate(x.shape) if n == 1])
    m.add(
        "Squeeze", [x.name, m.constant([at])], (x.dtype, (*x.shape[:at], *x.shape[at + 1 :]), x.most, x.exact)
    )


@rule()
def flatten(m: Maker) -> None:
    x = m.floats(1)
    at = m.rng.randint(0, x.rank)
    shape = (math.prod(x.shape[:at]), math.prod(x.shape[at:]))
    m.add("Flatten", [x.name], (x.dtype, shape, x.most, x.exact), axis=at)


@rule()
def expand(m: Maker) -> None:
    x = m.pick(lambda v: v.dtype != "uint8")
    shape = tuple([n if n > 1 else m.rng.choice((1, 2, 3)) for n in x.shape])
    if m.rng.random() < 0.5:
        shape = (m.rng.choice((1, 2)), *shape)
    m.add("Expand", [x.name, m.constant(shape)], (x.dtype, shape, x.most, x.exact))


@rule()
def tile(m: Maker) -> None:
    x = m.pick(lambda v: v.rank > 0 and v.dtype != "uint8")
    counts = [m.rng.choice((1, 1, 2)) for _ in x.shape]
    shape = tuple([a * b for a, b in zip(x.shape, counts)])
    m.add("Tile", [x.name, m.constant(counts)], (x.dtype, shape, x.most, x.exact))


@rule(3)
def concat(m: Maker) -> None:
    a = m.pick(lambda v: v.rank > 0)
    axis = m.rng.randrange(a.rank)
    rest = (*a.shape[:axis], *a.shape[axis + 1 :])
    b = m.pick(
        lambda v: v.dtype == a.dtype and v.rank == a.rank and (*v.shape[:axis], *v.shape[axis + 1 :]) == rest
    )
    shape = (*a.shape[:axis], a.shape[axis] + b.shape[axis], *a.shape[axis + 1 :])
    given = axis - a.rank if m.rng.random() < 0.5 else axis
    m.add("Concat", [a.name, b.name], (a.dtype, shape, max(a.most, b.most), a.exact and b.exact), axis=given)


@rule(2)
def split(m: Maker) -> None:
    x = m.pick(lambda v: any(n > 1 for n in v.shape))
    axis = m.rng.choice([i for i, n in enumerate(x.shape) if n > 1])
    first = m.rng.randint(1, x.shape[axis] - 1)
    parts = (first, x.shape[axis] - first)
    results = [(x.dtype, (*x.shape[:axis], n, *x.shape[axis + 1 :]), x.most, x.exact) for n in parts]
    m.add("Split", [x.name, m.constant(parts)], *results, axis=axis)


@rule(3)
def slices(m: Maker) -> None:
    x = m.pick(lambda v: v.rank > 0 and v.count > 0)
    axis, n = (k := m.rng.randrange(x.rank)), x.shape[k]
    step = m.rng.choice((1, 1, 2, -1, -2))
    start, end = m.rng.randint(-n - 1, n), m.rng.choice((m.rng.randint(-n - 1, n + 1), 1 << 40, -(1 << 40)))
    size = len(range(n)[slice(start, None if step < 0 and end < -n else end, step)])
    if not size:
        raise Unfit
    names = [m.constant([v]) for v in (start, end, axis, step)]
    m.add(
        "Slice", [x.name, *names], (x.dtype, (*x.shape[:axis], size, *x.shape[axis + 1 :]), x.most, x.exact)
    )


@rule(2)
def pad(m: Maker) -> None:
    x = m.pick(lambda v: v.dtype in ("float32", "int64") and v.rank > 0 and v.count > 0)
    mode = m.rng.choice(("constant", "edge", "reflect", "wrap"))
    pairs = [(m.rng.randint(0, min(2, n - 1)), m.rng.randint(0, min(2, n - 1))) for n in x.shape]
    shape = tuple([n + a + b for n, (a, b) in zip(x.shape, pairs)])
    pads = m.constant([a for a, _ in pairs] + [b for _, b in pairs])
    m.add("Pad", [x.name, pads], (x.dtype, shape, x.most, x.exact), mode=mode)


@rule()
def triangle(m: Maker) -> None:
    x = m.pick(lambda v: v.rank > 1 and v.dtype in ("float32", "int64"))
    k, upper = m.rng.randint(-2, 2), m.rng.randrange(2)
    m.add("Trilu", [x.name, m.constant(k)], (x.dtype, x.shape, x.most, x.exact), upper=upper)


@rule()
def shape_arithmetic(m: Maker) -> None:
    """A reshape whose sizes are computed, as exporters write it."""
    x = m.pick(lambda v: v.rank > 1)
    m.add("Shape", [x.name], ("int64", (x.rank,), max(x.shape), True))
    m.add("Gather", [m.values[-1].name, m.constant([0])], ("int64", (1,), x.shape[0], True))
    names = [m.values[-1].name, m.constant([-1])]
    m.add("Concat", names, ("int64", (2,), max(x.shape), True), axis=0)
    shape = (x.shape[0], x.count // x.shape[0])
    m.add("Reshape", [x.name, m.values[-1].name], (x.dtype, shape, x.most, x.exact))
