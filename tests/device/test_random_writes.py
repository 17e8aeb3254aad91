"""Random programs of lazy reads and in-place writes agree exactly with the same steps done at once on plain
arrays."""

from __future__ import annotations

import pytest

hypothesis = pytest.importorskip("hypothesis", reason="it makes the programs")
from hypothesis import HealthCheck, given, note, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from plain import Plain, assert_same  # noqa: E402

from polygrad import Tensor  # noqa: E402

SHAPE = (4, 6)


def _add(a, b):
    return a.map(lambda x, y: x + y, b) if isinstance(a, Plain) else a + b


# How a new value is made of two: the same function for Tensors and for plain arrays.
MAKERS = {
    "b": lambda a, b: b,
    "a + b": _add,
    "a + 1": lambda a, b: a.map(lambda x: x + 1) if isinstance(a, Plain) else a + 1,
    "b * 3": lambda a, b: b.map(lambda x: x * 3) if isinstance(b, Plain) else b * 3,
    "a flipped + b": lambda a, b: _add(a.flip((0, 1)), b),
    "a turned": lambda a, b: a.reshape((6, 4)).permute((1, 0)),
    "a moved": lambda a, b: a.shrink(((1, 4), (0, 5))).pad(((0, 1), (1, 0))),
    "rows of a": lambda a, b: (
        a.sum((0,), True).expand(SHAPE) if isinstance(a, Plain) else a.sum(0, keepdim=True).expand(SHAPE)
    ),
    "a + all of b": lambda a, b: (
        a.map(lambda x, s: x + s, b.sum(None, True)) if isinstance(a, Plain) else a + b.sum()
    ),
    "b from a corner": lambda a, b: b.shrink(((2, 3), (3, 4))).expand(SHAPE),
}
REGIONS = [
    ((0, 4), (0, 6)),
    ((0, 4), (0, 6)),
    ((1, 3), (0, 6)),
    ((0, 4), (2, 5)),
    ((3, 4), (5, 6)),
    ((0, 2), (1, 4)),
]

steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "read", "compute", "write region"]),
        st.integers(0, 2),  # of which buffer
        st.integers(0, 5),  # with which buffer or lazy value
        st.sampled_from(list(MAKERS)),
        st.sampled_from(REGIONS),
    ),
    min_size=1,
    max_size=10,
)


def _start(k):
    return Plain(SHAPE, [(i * (k + 3) + k) % 23 for i in range(24)])


def _wrapped(plain):
    return plain.map(lambda x: (x + 2**31) % 2**32 - 2**31)


@settings(suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
@given(steps=steps)
def test_writes_and_lazy_reads_in_any_order(device, steps):
    buffers = [Tensor(_start(k).tolist(), device=device, dtype="int32") for k in range(3)]
    states = [_start(k) for k in range(3)]
    lazy, judged = [], []
    for kind, target, other, maker, region in steps:
        note(f"{kind} buffer {target}, other {other}: {maker}, {region}")
        make = MAKERS[maker]
        source, plain = (
            (buffers[other % 3], states[other % 3]) if other < 3 or not lazy else (lazy[-1], judged[-1])
        )
        if kind == "read":
            lazy.append(make(buffers[target], source) * 1)  # a value, not the buffer under another name
            judged.append(_wrapped(make(states[target], plain)))
        elif kind == "compute":
            (lazy[other % len(lazy)] if lazy and other % 2 else buffers[target]).realize()
        elif kind == "write":
            buffers[target].assign(make(buffers[target], source))
            states[target] = _wrapped(make(states[target], plain))
        else:
            (r0, r1), (c0, c1) = region
            value, part = make(buffers[target], source), _wrapped(make(states[target], plain))
            buffers[target][r0:r1, c0:c1] = value[r0:r1, c0:c1]
            inside = part.shrink(region)
            old = states[target]
            states[target] = Plain(
                SHAPE,
                [
                    inside[i - r0, j - c0] if r0 <= i < r1 and c0 <= j < c1 else old[i, j]
                    for i in range(4)
                    for j in range(6)
                ],
            )
    for k in reversed(range(3)):
        assert_same(buffers[k].tolist(), states[k].tolist(), f"buffer {k}")
    for i, (t, p) in enumerate(zip(lazy, judged, strict=True)):
        assert_same(t.tolist(), p.tolist(), f"lazy value {i}")
