"""Movement operations and their compositions: every chain is one index expression, compared with plain
copying."""

from __future__ import annotations

import math
import random

import pytest
from plain import Plain, assert_same

from polygrad import Tensor


def ramp(shape):
    return Plain(shape, [i + 1 for i in range(math.prod(shape))])


def tensor(plain, device, dtype="int32"):
    return Tensor(plain.elements, device=device, dtype=dtype).reshape(plain.shape)


CASES = {
    "reshape": lambda x: x.reshape((6, 4)),
    "permute": lambda x: x.permute((2, 0, 1)),
    "flip": lambda x: x.flip((0, 2)),
    "pad": lambda x: x.pad(((1, 0), (0, 2), (3, 1))),
    "shrink": lambda x: x.shrink(((0, 2), (1, 3), (2, 4))),
    "expand": lambda x: x.reshape((2, 1, 3, 4)).expand((2, 5, 3, 4)),
    "permute, reshape": lambda x: x.permute((2, 1, 0)).reshape((3, 8)),
    "permute, reshape, permute": lambda x: x.permute((1, 2, 0)).reshape((4, 6)).permute((1, 0)),
    "pad, reshape": lambda x: x.pad(((0, 0), (1, 0), (0, 1))).reshape((4, 10)),
    "pad, reshape, shrink": lambda x: (
        x.pad(((0, 0), (1, 0), (0, 1))).reshape((5, 8)).shrink(((1, 4), (2, 7)))
    ),
    "pad, flip, pad": lambda x: x.pad(((1, 0), (0, 0), (0, 2))).flip((0, 1, 2)).pad(((1, 1), (0, 1), (0, 0))),
    "shrink, pad": lambda x: x.shrink(((1, 2), (0, 3), (1, 3))).pad(((2, 0), (1, 1), (0, 2))),
    "expand, reshape": lambda x: x.reshape((2, 1, 12)).expand((2, 3, 12)).reshape((6, 12)),
    "expand, reshape, flip": lambda x: x.reshape((2, 1, 12)).expand((2, 3, 12)).reshape((9, 8)).flip((0,)),
    "windows": lambda x: (
        x.reshape((24, 1)).expand((24, 2)).reshape((48,)).shrink(((0, 46),)).reshape((2, 23))
    ),
    "pad to nothing left": lambda x: x.shrink(((0, 1), (0, 1), (0, 1))).pad(((3, 3), (0, 0), (0, 0))),
}


@pytest.mark.parametrize("case", CASES)
def test_chain(device, case):
    x = ramp((2, 3, 4))
    t = tensor(x, device)
    got, expected = CASES[case](t), CASES[case](x)
    assert tuple(got.shape) == expected.shape
    assert_same(got.tolist(), expected.tolist())
    assert_same((got * 2 + 1).tolist(), expected.map(lambda v: v * 2 + 1).tolist(), "fused with arithmetic")


def random_chain(rng, x, t, length):
    for _ in range(length):
        shape = x.shape
        n = len(shape)
        match rng.choice(["reshape", "permute", "flip", "pad", "shrink", "expand"]):
            case "reshape":
                sizes, left = [], math.prod(shape)
                while left > 1:
                    d = rng.choice([d for d in range(2, left + 1) if left % d == 0])
                    sizes.append(d)
                    left //= d
                new = tuple(sizes) or (1,)
                x, t = x.reshape(new), t.reshape(new)
            case "permute":
                order = rng.sample(range(n), n)
                x, t = x.permute(order), t.permute(tuple(order))
            case "flip":
                axes = tuple(rng.sample(range(n), rng.randint(1, n)))
                x, t = x.flip(axes), t.flip(axes)
            case "pad" if math.prod(shape) < 300:
                pairs = tuple((rng.randint(0, 2), rng.randint(0, 2)) for _ in shape)
                x, t = x.pad(pairs), t.pad(pairs)
            case "shrink":
                ends = [sorted(rng.sample(range(s + 1), 2)) for s in shape]
                pairs = tuple((lo, hi) for lo, hi in ends)
                x, t = x.shrink(pairs), t.shrink(pairs)
            case "expand" if math.prod(shape) < 100:
                k = rng.randint(2, 3)
                new = (k, *shape)
                x, t = x.expand(new), t.reshape((1, *shape)).expand(new)
    return x, t


@pytest.mark.parametrize("seed", range(12))
def test_random_chains(device, seed):
    rng = random.Random(seed)
    x = ramp(rng.choice([(12,), (4, 6), (2, 3, 5), (7, 3)]))
    for _ in range(3):
        y, t = random_chain(rng, x, tensor(x, device), rng.randint(2, 7))
        assert_same(t.tolist() if y.elements else [], y.tolist() if y.elements else [])


def test_slices_with_steps(device):
    x = ramp((5, 7))
    t = tensor(x, device)
    rows = x.tolist()
    assert_same(t[::2, ::-3].tolist(), [r[::-3] for r in rows[::2]])
    assert_same(t[-2:, 1:-1].tolist(), [r[1:-1] for r in rows[-2:]])
    assert_same(t[..., 3].tolist(), [r[3] for r in rows])
    assert_same(t[2, None].tolist(), [rows[2]])


def test_joining_and_splitting(device):
    x, y = ramp((2, 3)), ramp((4, 3))
    a, b = tensor(x, device), tensor(y, device)
    assert_same(a.cat(b).tolist(), x.tolist() + y.tolist())
    assert_same(a.cat(b, a).split([2, 4, 2])[2].tolist(), x.tolist())
    assert_same(a.stack(a + 1, dim=1).tolist(), [[r, [v + 1 for v in r]] for r in x.tolist()])
    assert_same(a.repeat(2, 2).tolist(), [r * 2 for r in x.tolist()] * 2)
    assert_same(b.roll(1, 0).tolist(), [y.tolist()[-1], *y.tolist()[:-1]])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "float64"])
def test_padding_of_other_dtypes(device, dtype):
    data = [True, True, True] if dtype == "bool" else [1, 2, 3]
    got = Tensor(data, device=device, dtype=dtype).pad(((2, 3),)).tolist()
    assert got == [0, 0, *data, 0, 0, 0]
