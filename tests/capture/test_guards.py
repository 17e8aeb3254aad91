"""What a captured function reads of Python: a change is seen; it is captured anew, or an error says which."""

from __future__ import annotations

import functools
import gc
import types
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
from capture.calls import t

from polygrad import Device, Tensor, TinyJit, compile_step, dtypes, nn
from polygrad.capture import guards
from polygrad.errors import CaptureError
from polygrad.nn.optim import SGD

pytestmark = pytest.mark.usefixtures("default_device")

scale = 2
config = types.ModuleType("config")
config.scale = 2
settings = {"scale": 2, "deep": [{"scale": 2}]}


@dataclass
class Options:
    scale: float = 2
    shape: tuple[int, ...] = (1,)


class Layer:
    def __init__(self):
        self.scale = 2

    def __call__(self, x):
        return x * self.scale


class Model:
    """Numbers where models keep them."""

    kind = 2

    def __init__(self):
        self.scale, self.options, self.layers = 2, Options(), [Layer()]
        self._of_property = 2

    @property
    def property_scale(self):
        return self._of_property

    def method(self, x):
        return x * self.scale

    def through_options(self, x):
        return x * self.options.scale

    def through_a_name(self, x):
        options = self.options
        return x * options.scale

    def through_a_property(self, x):
        return x * self.property_scale

    def through_layers(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def through_attributes_of_layers(self, x):
        for layer in self.layers:
            x = x * layer.scale
        return x

    def through_a_class(self, x):
        return x * self.kind

    def through_another_method(self, x):
        return self.method(x)

    def through_a_helper(self, x):
        return _times(self.options, x)

    def through_a_lambda(self, x):
        return (lambda y: y * self.scale)(x)

    def through_a_list(self, x):
        return Tensor.stack(*[x * layer.scale for layer in self.layers]).sum(0)


def _times(options, x):
    return x * options.scale


def set_scale(model, name, value):
    if "options" in name or name in ("through_a_name", "through_a_helper"):
        model.options.scale = value
    elif "property" in name:
        model._of_property = value
    elif "layers" in name or name == "through_a_list":
        model.layers[0].scale = value
    elif "class" in name:
        model.kind = value
    else:
        model.scale = value


@pytest.mark.parametrize("name", [n for n in vars(Model) if n == "method" or n.startswith("through")])
def test_a_number_of_an_object_is_seen_to_change(device, name):
    model = Model()
    for jit in (TinyJit(getattr(model, name)), TinyJit(lambda x: getattr(Model, name)(model, x))):
        if "lambda" in jit.__name__:
            jit = TinyJit(functools.partial(getattr(Model, name), model))
        for value in (2, 3, 2.5, -1):
            set_scale(model, name, value)
            assert [jit(t(i)).item() for i in range(12)] == [value * i for i in range(12)]
            assert jit.captured


def _of_global(x):
    return x * scale


def _of_module(x):
    return x * config.scale


def _of_settings(x):
    return x * settings["scale"]


def _of_deep_settings(x):
    return x * settings["deep"][0]["scale"]


def _of_get(x):
    return x * settings.get("scale", 1)


def _of_helper(x):
    return 1 * _of_global(x)


def _of_partial(x):
    return _partial(x=x)


def _wrapped(x):
    return _decorated(x)


def decorate(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)

    return call


_partial = functools.partial(_of_global)
_decorated = decorate(_of_global)


@pytest.mark.parametrize(
    "function",
    [_of_global, _of_module, _of_settings, _of_deep_settings, _of_get, _of_helper, _of_partial, _wrapped],
)
def test_a_number_of_a_module_is_seen_to_change(device, function, monkeypatch):
    jit = TinyJit(function)
    for value in (2, 3, True, 0.5):
        monkeypatch.setitem(globals(), "scale", value)
        monkeypatch.setattr(config, "scale", value)
        monkeypatch.setitem(settings, "scale", value)
        monkeypatch.setitem(settings["deep"][0], "scale", value)
        assert [jit(t(i)).item() for i in range(12)] == [value * i for i in range(12)]


def test_closure_variables_tensors_and_objects_are_seen_to_change(device):
    k, w, layer, add = 1, t(1), Layer(), None

    @TinyJit
    def f(x):
        return layer(x * k + w) + (0 if add is None else add)

    def check(want):
        assert [f(t(i)).item() for i in range(10)] == [want(i) for i in range(10)]

    check(lambda i: 2 * (i + 1))
    k = 3
    check(lambda i: 2 * (3 * i + 1))
    w = t(2)
    check(lambda i: 2 * (3 * i + 2))
    w.assign(t(4)).realize()
    check(lambda i: 2 * (3 * i + 4))
    layer = Layer()
    layer.scale = 1
    check(lambda i: 3 * i + 4)
    add = t(10)
    check(lambda i: 3 * i + 14)
    add = None
    check(lambda i: 3 * i + 4)


def test_types_and_signs_are_part_of_a_number(device):
    k = 1

    @TinyJit
    def f(x):
        return x * k

    for _ in range(10):
        assert f(Tensor([2])).dtype is dtypes.int32
    k = 1.0
    for _ in range(10):
        assert f(Tensor([2])).dtype is dtypes.float32
    k = 0.0
    for _ in range(10):
        assert not np.signbit(f(Tensor([2])).item())
    k = -0.0
    for _ in range(10):
        assert np.signbit(f(Tensor([2])).item())
    k = float("nan")
    step = [f(Tensor([2])) for _ in range(3)][-1]
    k = float("nan")
    assert f(Tensor([2])) is step  # an equal value, captured no more


def test_equal_values_are_captured_once(device):
    model, calls = Model(), []

    @TinyJit
    def f(x):
        calls.append(1)
        return model.through_options(x)

    for i in range(8):
        model.options.scale = float("2.5")  # another object each time
        assert f(t(i)).item() == 2.5 * i
    assert len(calls) == 2


def test_a_value_that_changes_again_and_again_is_an_error_that_names_it(device):
    rate = 1.0

    @TinyJit
    def f(x):
        return x * rate

    for _i in range(4):
        for _ in range(12):  # an epoch: captures are worth it
            assert f(t(2)).item() == 2 * rate
        rate *= 0.5
    with pytest.raises(CaptureError, match=r"rate \(.*, then .*\) changes every few calls"):
        for _ in range(20):
            assert f(t(2)).item() == 2 * rate
            rate *= 0.5
    f.reset()
    assert [f(t(2)).item() for _ in range(3)] == [2 * rate] * 3


def test_what_the_function_itself_changes_is_an_error_that_names_it(device):
    class Counter:
        def __init__(self):
            self.step, self.hidden, self.last, self.total = 0, t(0), None, t(0)

        def count(self, x):
            self.step += 1
            return x * self.step

        def carry(self, x):
            self.hidden = self.hidden + x
            return self.hidden * 2

        def remember(self, x):
            self.last = x * 2  # written before it is read: nothing is carried over
            return self.last + 1

        def first_time(self, x):
            if self.last is None:
                self.last = t(5)
            return x + self.last

        def add(self, x):
            self.total.assign(self.total + x)
            return self.total * 1

    counter = Counter()
    count = TinyJit(counter.count)
    assert count(t(1)).item() == 1
    with pytest.raises(CaptureError, match=r"each call itself changes self.step \(1, then 2\)"):
        count(t(1))
    with pytest.raises(CaptureError, match=r"each call itself changes self\.hidden"):
        _twice(TinyJit(counter.carry))
    assert [f(t(i)).item() for f in [TinyJit(counter.remember)] for i in range(4)] == [1, 3, 5, 7]
    counter.last = None
    assert [f(t(i)).item() for f in [TinyJit(counter.first_time)] for i in range(4)] == [5, 6, 7, 8]
    assert [f(t(1)).item() for f in [TinyJit(counter.add)] for i in range(4)] == [1, 2, 3, 4]


def _twice(jit):
    for _ in range(2):
        jit(t(1))


def test_nonlocal_counters_are_errors_and_logs_are_not(device):
    n, log = 0, []

    @TinyJit
    def f(x):
        nonlocal n
        n += 1
        return x * 2

    f(t(1))
    with pytest.raises(CaptureError, match=r"changes n \(1, then 2\)"):
        f(t(1))

    @TinyJit
    def g(x):
        log.append(len(log))
        return x * 2

    assert [g(t(i)).item() for i in range(4)] == [0, 2, 4, 6] and len(log) == 2


def test_modes_have_a_capture_each(device):
    calls = []

    @TinyJit
    def f(x):
        calls.append(Tensor.training)
        return x.dropout(0.5) + (1 if Tensor.training else 0)

    for _ in range(6):
        assert f(t(*[1] * 32)).tolist() == [1] * 32
        with Tensor.train():
            assert set(f(t(*[1] * 32)).tolist()) == {1, 3}
    assert calls == [False, True, False, True]

    @TinyJit
    def new(x):
        return x.sum() + Tensor(1.5).reshape(1) + Tensor.ones(1)

    for dtype in (dtypes.float32, dtypes.float16) * 3:
        old, dtypes.default_float = dtypes.default_float, dtype
        try:
            assert new(Tensor([1], dtype="float16")).dtype is dtype
        finally:
            dtypes.default_float = old


def test_the_default_device_and_grad_mode_are_modes():
    @TinyJit
    def f():
        return Tensor([1.0, 2.0]).clone() * 2

    before = Device.DEFAULT
    try:
        for name in ("CPU", "INTERP") * 3:
            Device.DEFAULT = name
            assert f().device == name
    finally:
        Device.DEFAULT = before
    seen = []

    @TinyJit
    def g(x):
        seen.append((x * 2).requires_grad)
        return x * 2

    for _ in range(4):
        g(t(1, requires_grad=True))
        with Tensor.no_grad():
            g(t(1, requires_grad=True))
    assert len(seen) == 4


def test_positional_keyword_and_default_arguments_are_the_same_call(device):
    calls = []

    @TinyJit
    def f(x, y, k=3, *, bias=None):
        calls.append(1)
        return x * k - y

    ways = [
        lambda x, y: f(x, y),
        lambda x, y: f(x, y=y),
        lambda x, y: f(y=y, x=x),
        lambda x, y: f(x, y, 3),
        lambda x, y: f(x, k=3, y=y, bias=None),
    ]
    for i in range(10):
        assert ways[i % 5](t(i), t(1)).item() == 3 * i - 1
    assert len(calls) == 2
    with pytest.raises(CaptureError, match="to stay"):
        f(t(1), t(1), 4)

    @TinyJit
    def rest(x, *args, **kwargs):
        return x * args[0] + kwargs["b"] * 10 + kwargs["a"]

    assert [rest(t(1), t(2), a=t(i), b=t(3)).item() for i in range(4)] == [32, 33, 34, 35]
    assert rest(t(1), t(2), b=t(3), a=t(5)).item() == 37


def test_arguments_objects_are_looked_into(device):
    model = Model()
    jit = TinyJit(lambda model, x: model.through_layers(x) + model.options.scale)
    for value in (2, 3):
        model.layers[0].scale = model.options.scale = value
        assert [jit(model, t(i)).item() for i in range(4)] == [value * (i + 1) for i in range(4)]


def test_guards_keep_nothing_alive(device):
    class Owner(Model):
        @TinyJit
        def f(self, x):
            return self.through_layers(x) * self.scale + self.options.scale

    owner = Owner()
    owner.options.parent = owner
    for i in range(4):
        assert owner.f(t(i)).item() == 4 * i + 2
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None and not Owner.f._of


def test_a_deleted_attribute_is_a_change(device):
    model = Model()
    model.kind = 3
    jit = TinyJit(model.through_a_class)
    assert [jit(t(i)).item() for i in range(4)] == [0, 3, 6, 9]
    del model.kind
    assert [jit(t(i)).item() for i in range(4)] == [0, 2, 4, 6]


def test_a_compiled_step_refuses_other_values(device):
    class Net:
        def __init__(self):
            self.layer, self.p, self.depth = nn.Linear(2, 1), 0.0, 1

        def __call__(self, x):
            for _ in range(self.depth):
                x = x * 1.0
            return self.layer(x.dropout(self.p))

    weight = 1.0
    model = Net()
    opt = SGD(nn.state.get_parameters(model), lr=0.1)
    x, y = Tensor.ones(4, 2).contiguous(), Tensor.ones(4, 1).contiguous()
    step = compile_step(lambda model, x, y: ((model(x) - y).square().mean() * weight, x), model, opt, x, y)
    _, returned = step.run(x, y)
    assert returned.tolist() == x.tolist()
    for change, back, name in (
        (lambda: setattr(model, "p", 0.5), lambda: setattr(model, "p", 0.0), r"self.p \(0.0, then 0.5\)"),
        (lambda: setattr(model, "depth", 2), lambda: setattr(model, "depth", 1), r"self.depth \(1, then 2\)"),
    ):
        change()
        with pytest.raises(CaptureError, match=rf"run: {name}.*has changed since the step was compiled"):
            step.run(x, y)
        back()
        step.run(x, y)
    weight = 2.0
    with pytest.raises(CaptureError, match=r"run: weight.*has changed"):
        step.run(x, y)


def test_a_call_compares_in_one_expression():
    model = Model()
    jit = TinyJit(model.through_options)
    for i in range(3):
        jit(t(i))
    found = jit._current.guards
    labels = [label for group in found._groups for label in group.labels]
    assert labels == ["self.options", "self.options.scale"] and found.is_same()
    assert guards.modes_now()[1] is True
