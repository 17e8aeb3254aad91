"""Views share memory with what they are of: each sees what is written through any other, in program order."""

from __future__ import annotations

import pytest

from polygrad import Tensor, TinyJit, Variable, compile_step, nn
from polygrad.errors import ArgumentError, CaptureError, DTypeError, ShapeError


def ints(device, *shape):
    n = 1
    for s in shape:
        n *= s
    return Tensor(list(range(n)), device=device, dtype="int32").reshape(*shape).realize()


def zeros(device, *shape):
    return Tensor.zeros(*shape, device=device).contiguous().realize()


@pytest.mark.parametrize(
    ("view", "want"),
    [
        (lambda x: x[1:3], [0, 10, 20, 3, 4, 5]),
        (lambda x: x.reshape(2, 3).permute(1, 0), [0, 10, 20, 30, 40, 50]),
        (lambda x: x.flip(0)[:2], [0, 1, 2, 3, 40, 50]),
        (lambda x: x[::-2], [0, 10, 2, 30, 4, 50]),
        (lambda x: x[::2][1:], [0, 1, 20, 3, 40, 5]),
        (lambda x: x.reshape(2, 3)[1], [0, 1, 2, 30, 40, 50]),
        (lambda x: x.unsqueeze(0).expand(3, 6)[1], [0, 10, 20, 30, 40, 50]),
        (lambda x: x.reshape(3, 2).split(1)[2], [0, 1, 2, 3, 40, 50]),
        (lambda x: x.unfold(0, 2, 3)[1], [0, 1, 2, 30, 40, 5]),
        (lambda x: x[:4].reshape(2, 2).diagonal(), [0, 1, 2, 30, 4, 5]),
    ],
)
@pytest.mark.parametrize("realized", [True, False])
def test_a_view_shows_what_it_was_assigned(device, view, want, realized):
    x = ints(device, 6)
    x = x if realized else x + 0
    v = view(x)
    expected = (v * 10).tolist()
    v.assign(v * 10).realize()
    assert v.tolist() == expected and x.tolist() == want


def test_writes_through_views_need_no_realize(device):
    b = zeros(device, 4)
    b[0:2].assign(Tensor.ones(2, device=device))
    assert b.tolist() == [1, 1, 0, 0]
    t = zeros(device, 2, 3)
    t.T[1, 0] = 5
    t[1][2] = 6
    t.detach()[0, 0] = 7
    t[::-1][0, :1] = 8
    assert t.tolist() == [[7, 5, 0], [8, 0, 6]]


def test_writes_through_a_bitcast(device):
    x = Tensor([1.0, -2.0, 3.0], device=device).realize()
    bits = x.bitcast("int32")
    bits[:2].assign(Tensor([0x40000000, 0x40400000], device=device, dtype="int32"))
    assert x.tolist() == [2, 3, 3] and bits.tolist() == [0x40000000, 0x40400000, 0x40400000]
    x.assign(x * 0)
    assert bits.tolist() == [0, 0, 0]


def test_a_cache_that_is_written_row_by_row(device):
    cache, total = zeros(device, 4, 2), 0.0
    for p in range(4):
        cache[p : p + 1].assign(Tensor([[p + 1.0, p]], device=device))
        total += 2 * p + 1
        assert cache.sum().item() == total
    start = Variable("start", 0, 3)
    for p in range(4):
        cache.shrink(((start.bind(p), start.bind(p) + 1), None)).assign(Tensor([[0.0, 1.0]], device=device))
        assert cache.sum(0).tolist()[1] == sum([1] * (p + 1)) + sum(range(p + 1, 4))


def test_writes_to_parts_do_not_wait_for_each_other(device):
    big = zeros(device, 4)
    parts = [big[:2], big[2:]]
    for part in parts:
        part.assign(part + 1)
    parts[0].realize()
    assert big.tolist() == [1, 1, 1, 1]
    base = zeros(device, 4)
    base.assign(base + 2)
    c = base.contiguous()
    c.assign(c * 3)
    base.assign(c).realize()
    assert base.tolist() == [6, 6, 6, 6]


def test_old_and_new_values_in_one_kernel(device):
    x = ints(device, 4)
    old = x * 10
    x[1:3].assign(x[2:4])
    middle = x + 0
    x[0:1].assign(x[3:4])
    both = old + middle * 100 + x * 10_000
    assert both.tolist() == [30_000, 20_210, 30_320, 30_330]


def test_values_are_what_they_were_and_views_are_what_is_there(device):
    def swap(copied):
        t = ints(device, 3, 2)
        kept = t[0] + 0 if copied else t[0]
        t[0] = t[1]
        t[2] = kept
        return t.tolist()

    assert swap(False) == [[2, 3], [2, 3], [2, 3]]
    assert swap(True) == [[2, 3], [2, 3], [0, 1]]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.sum(0),
        lambda x: x.clone(),
        lambda x: x.cat(dim=0),
        lambda x: x.repeat(1, 1),
        lambda x: x.pad(((0, 0), (0, 0))),
        lambda x: x.max(0, keepdim=True),
        lambda x: x.floor(),
        lambda x: x.cumsum(0),
        lambda x: x.sort(0)[0],
    ],
)
def test_what_is_computed_is_a_value_even_where_it_is_the_same_elements(device, make):
    x = ints(device, 1, 3)
    value = make(x)
    x.assign(x * 0).realize()
    assert value.flatten().tolist() == [0, 1, 2]
    value.assign(value + 5)
    assert value.flatten().tolist() == [5, 6, 7] and x.tolist() == [[0, 0, 0]]


def test_contiguous_is_a_view_of_what_is_contiguous(device):
    x = ints(device, 3, 4)
    rows, columns, turned = x[1:].contiguous(), x[:, 1:].contiguous(), x.T.contiguous()
    x.assign(x * 0).realize()
    assert rows.tolist() == [[0] * 4] * 2
    assert columns.tolist() == [[1, 2, 3], [5, 6, 7], [9, 10, 11]] and turned[3].tolist() == [3, 7, 11]
    assert x.T[1:].T.contiguous().T.contiguous().shape == (3, 3)
    back = x.T.T.contiguous()
    back += 1
    assert x.sum().item() == 12
    x.assign(x * 0)
    y = x + 1
    same = y.contiguous()
    same[0] = 9
    assert y[:, 0].tolist() == [9, 1, 1]


def test_a_tensor_that_becomes_itself_is_one_view(device):
    x = ints(device, 3)
    x.replace(x.to(device).realize())
    part = x[1:]
    part += 1
    call = TinyJit(lambda: x + 1)
    assert [call().tolist() for _ in range(3)] == [[1, 3, 4]] * 3 and x.tolist() == [0, 2, 3]


def test_a_value_that_lies_in_memory_written_to_is_kept(device):
    x = ints(device, 4)
    a, b = x + 1, x + 1  # one node, two values
    a.realize()
    x.assign(x * 0).realize()
    a.assign(a * 100).realize()
    assert (a.tolist(), b.tolist()) == ([100, 200, 300, 400], [1, 2, 3, 4])


def test_a_read_on_another_device_comes_first(device):
    other = "INTERP" if device != "INTERP" else "WASM"
    x = ints(device, 3)
    there = x.to(other)
    x.assign(x + 1).realize()
    assert there.tolist() == [0, 1, 2] and x.tolist() == [1, 2, 3]


# --- in-place operators


def _power(t):
    t **= 2
    return t


def _each(t, x):
    for name in ("iadd", "isub", "imul", "ifloordiv", "imod", "iand", "ior", "ixor", "ilshift", "irshift"):
        yield name, getattr(t, f"__{name}__")(x)


def test_in_place_operators_write_to_the_memory(device):
    x = ints(device, 5)
    view, memory = x[1:4], x.uop.base.arg.handle
    for name, updated in _each(view, 3):
        assert updated is view, name
    want = [((((((((k + 3 - 3) * 3) // 3) % 3) & 3) | 3) ^ 3) << 3) >> 3 for k in (1, 2, 3)]
    assert x.tolist() == [0, *want, 4]
    view += Tensor([1, 2, 3], device=device)
    view = _power(view)
    assert x.tolist()[1:4] == [(w + k) ** 2 for w, k in zip(want, (1, 2, 3), strict=True)]
    y = Tensor([[2.0, 0.0], [0.0, 4.0]], device=device).realize()
    same = y
    y /= 2
    y @= y
    assert same is y and y.tolist() == [[1, 0], [0, 4]]
    x.realize()
    assert x.uop.base.arg.handle == memory


def test_in_place_operators_keep_the_dtype(device):
    half = Tensor([1.0], device=device, dtype="float16").realize()
    half += Tensor([0.5], device=device)
    byte = Tensor([250], device=device, dtype="uint8").realize()
    byte += Tensor([10], device=device)
    assert half.dtype == "float16" and half.item() == 1.5 and byte.dtype == "uint8" and byte.item() == 4
    n = ints(device, 2)
    for change in (lambda t: t.__itruediv__(2), lambda t: t.__iadd__(0.5)):
        with pytest.raises(DTypeError, match="expected a result that fits int32, got float32"):
            change(n)
    with pytest.raises(ShapeError, match=r"expected shape \(2,\), got \(3, 2\)"):
        n += Tensor.ones(3, 2, dtype="int32", device=device)
    assert n.tolist() == [0, 1]


def test_setting_by_a_mask(device):
    t = ints(device, 2, 3)
    t[t > 3] = -1
    t[Tensor([True, False], device=device)] = Tensor([7, 8, 9], device=device)
    assert t.tolist() == [[7, 8, 9], [3, -1, -1]]
    t.T[[False, True, False]] = 0
    assert t.tolist() == [[7, 0, 9], [3, 0, -1]]
    t[Tensor([True, True], device=device)] = Tensor([[1], [2]], device=device)
    assert t.tolist() == [[1, 1, 1], [2, 2, 2]]
    with pytest.raises(ShapeError, match="expected a mask of the shape of the first axes"):
        t[Tensor([True, False, True], device=device)] = 1


# --- what cannot be written


def test_a_view_that_shows_elements_twice_is_not_written_to(device):
    x = ints(device, 2, 1)
    for view in (
        x.expand(2, 3),
        x.expand(2, 3).reshape(6),
        x.expand(2, 3)[1],
        x.T.expand(4, 2).permute(1, 0),
        ints(device, 6).unfold(0, 3, 1),
    ):
        with pytest.raises(ArgumentError, match="expected a view that shows each element once"):
            view.assign(view * 0)
        with pytest.raises(ArgumentError, match="expected a view that shows each element once"):
            view += 1
        with pytest.raises(ArgumentError, match="expected a view that shows each element once"):
            view[...] = 0
    assert x.tolist() == [[0], [1]]
    x.expand(2, 3)[:, 1] = 5
    assert x.tolist() == [[5], [5]]


def test_constants_are_written_like_memory_to_be(device):
    for make in (lambda: Tensor.zeros(3, device=device), lambda: Tensor.arange(3, device=device) * 0.0):
        a, b = make(), make()
        a[1:].assign(a[1:] + 2)
        assert a.tolist() == [0, 2, 2] and b.tolist() == [0, 0, 0]


# --- captured


def test_a_captured_function_counts(device):
    count, constant = ints(device, 1), Tensor(0, device=device)

    @TinyJit
    def call(x):
        nonlocal count, constant
        count += 1
        constant += 2
        return x + count

    for i in range(1, 6):
        assert call(ints(device, 2)).tolist() == [i, i + 1]
        assert (count.item(), constant.item()) == (i, 2 * i)
    count.assign(count * 0)
    constant.assign(100)
    assert call(ints(device, 2)).tolist() == [1, 2] and constant.item() == 102


def test_a_step_counts(device):
    w, seen = Tensor([1.0], device=device), Tensor(0, device=device)
    optimizer = nn.optim.SGD([w], lr=0.0, device=device)

    def loss(_, x):
        nonlocal seen
        seen += x.shape[0]
        return (w * x.sum()).sum()

    step = compile_step(loss, [w], optimizer, Tensor.ones(4, device=device).realize())
    for i in range(1, 4):
        step.run()
        assert seen.item() == 4 * i


def test_a_captured_function_writes_to_its_arguments(device):
    @TinyJit
    def call(x, part, y):
        x += 1
        part *= 10
        y[::2] = x[:2]

    for i in range(5):
        x, y = ints(device, 4), zeros(device, 4).cast("int32").realize()
        seen, lazy = x[1:], x + 0
        call(x, x[2:], y)
        assert x.tolist() == [1, 2, 30, 40] and y.tolist() == [1, 0, 2, 0], i
        assert seen.tolist() == [2, 30, 40] and lazy.tolist() == [0, 1, 2, 3]


def test_a_captured_function_writes_through_views(device):
    data = ints(device, 6)

    @TinyJit
    def call(part):
        part.assign(part + 100)
        return data.sum()

    for i in range(1, 5):
        assert call(data[2:4]).item() == 15 + 200 * i
    with pytest.raises(CaptureError, match="another view of memory"):
        call(data[0:2])
    assert call(data[2:4]).item() == 15 + 1000


def test_views_of_data_may_differ_from_call_to_call(device):
    data = ints(device, 8)
    call = TinyJit(lambda x: x * 2)
    for i in range(4):
        assert call(data[2 * i : 2 * i + 2]).tolist() == [4 * i, 4 * i + 2]


def test_lazy_values_keep_what_a_replay_overwrites(device):
    w = ints(device, 2)

    @TinyJit
    def call():
        nonlocal w
        w += 1
        return w * 10

    kept, want = [], []
    for i in range(1, 6):
        result = call()
        kept += [w + 0, result.sum(), w[1:] * 1]
        want += [[i, i + 1], 20 * i + 10, [i + 1]]
    assert [k.tolist() for k in kept] == want


def test_what_is_written_between_calls_is_seen(device):
    w, lazy = ints(device, 2), ints(device, 2) * 3
    call = TinyJit(lambda x: x + w + lazy)
    for i in range(6):
        assert call(ints(device, 2)).tolist() == [10 * i, 10 * i + 5]
        w[1:] += 10
        lazy[:1] += 10
