"""copy, deepcopy and pickle of Tensors, Variables, captured functions, models and optimizers."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from polygrad import Device, Tensor, TinyJit, Variable, dtypes, nn
from polygrad.errors import CaptureError, ShapeError

pytestmark = pytest.mark.usefixtures("default_device")


def pickled(x):
    return pickle.loads(pickle.dumps(x))


COPIES = {"deepcopy": copy.deepcopy, "pickle": pickled}
TENSORS = {
    "realized": lambda: Tensor([[1.0, 2.0], [3.0, 4.0]]).realize(),
    "lazy": lambda: Tensor([1.0, 2.0]) * 3 + 1,
    "constant": lambda: Tensor.zeros(2, 3),
    "range": lambda: Tensor.arange(5),
    "view": lambda: Tensor.arange(12).reshape(3, 4).realize()[1:, ::2],
    "expanded": lambda: Tensor([[1], [2]]).expand(2, 3),
    "scalar": lambda: Tensor(2.5),
    "empty": lambda: Tensor.zeros(0, 3),
    "random": lambda: Tensor.rand(4),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", TENSORS)
def test_a_copy_has_the_elements_and_memory_of_its_own(device, name, how):
    t = TENSORS[name]()
    c = COPIES[how](t)
    want = t.tolist()
    assert (c.tolist(), c.shape, c.dtype, c.device) == (want, t.shape, t.dtype, device)
    c.assign(c + 1).realize()
    again = COPIES[how](t)
    assert t.tolist() == want == again.tolist()
    if t.uop.op.name in ("BUFFER", "RESHAPE"):
        t.assign(t + 5).realize()
        assert again.tolist() == want


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("dtype", dtypes.all)
def test_every_dtype(dtype, how):
    t = Tensor([0, 1, 1], dtype=dtype)
    c = COPIES[how](t)
    assert c.dtype is dtype and c.tolist() == t.tolist()


@pytest.mark.parametrize("how", COPIES)
def test_gradients_and_what_is_said_of_them_are_copied(how):
    t = Tensor([1.0, 2.0], requires_grad=True)
    (t * t).sum().backward()
    c = COPIES[how](t)
    assert c.requires_grad is True and c.grad.tolist() == [2, 4]
    c.grad = None
    (c * 3).sum().backward()
    assert c.grad.tolist() == [3, 3] and t.grad.tolist() == [2, 4]
    derived = COPIES[how](t * 2)  # a leaf
    (derived * derived).sum().backward()
    assert derived.grad.tolist() == [4, 8] and t.grad.tolist() == [2, 4]
    assert [COPIES[how](Tensor([1.0], requires_grad=r)).requires_grad for r in (None, False)] == [None, False]


@pytest.mark.parametrize("how", COPIES)
def test_what_is_one_tensor_stays_one(how):
    t = Tensor([1.0])
    a, b, c = COPIES[how]([t, t, Tensor([1.0])])
    assert a is b is not c and a is not t
    a.assign(Tensor([2.0])).realize()
    assert c.item() == 1


@pytest.mark.parametrize("how", COPIES)
def test_copies_of_equal_constants_have_gradients_of_their_own(how):
    a, b = COPIES[how](Tensor.zeros(2)), COPIES[how](Tensor.zeros(2))
    (a * 2 + b * 3).sum().backward()
    assert a.grad.tolist() == [2, 2] and b.grad.tolist() == [3, 3]


def test_a_shallow_copy_is_a_view(device):
    t = Tensor([1.0, 2.0], requires_grad=True).realize()
    c = copy.copy(t)
    t.assign(Tensor([5.0, 6.0])).realize()
    assert c is not t and c.tolist() == [5, 6] and c.requires_grad is True
    (c * 2).sum().backward()
    assert c.grad.tolist() == [2, 2]


def test_a_pickle_is_read_on_the_default_device_unless_another_was_meant():
    old = Device.DEFAULT
    here, there = (
        pickle.dumps(Tensor([1.0]).realize()),
        pickle.dumps(Tensor([1.0], device="INTERP").realize()),
    )
    try:
        Device.DEFAULT = "WASM"
        assert (pickle.loads(here).device, pickle.loads(there).device) == ("WASM", "INTERP")
    finally:
        Device.DEFAULT = old


def test_symbolic_shapes_and_captures_are_refused():
    n = Variable("n", 1, 4).bind(2)
    with pytest.raises(ShapeError, match="expected a shape of ints"):
        pickle.dumps(Tensor([1.0, 2.0, 3.0, 4.0])[:n])
    f = TinyJit(lambda x: pickle.loads(pickle.dumps(x)))
    x = Tensor([1.0])
    f(x)
    with pytest.raises(CaptureError):
        f(x)


@pytest.mark.parametrize("how", [*COPIES.values(), copy.copy], ids=[*COPIES, "copy"])
def test_variables_are_themselves(how):
    n = Variable("n", 1, 9)
    assert how(n) is n and how(n.bind(3)) is n.bind(3) and how(n * 2 + 1) is n * 2 + 1
    assert how({"size": n})["size"] is n


def test_other_nodes_are_not_pickled():
    with pytest.raises(TypeError, match="but for Variables"):
        pickle.dumps(Tensor([1.0]).uop)


# --- captured functions


def double(x):
    return x * 2


@TinyJit
def triple(x):
    return x * 3


@pytest.mark.parametrize("how", [*COPIES.values(), copy.copy], ids=[*COPIES, "copy"])
def test_a_captured_function_is_captured_anew(device, how):
    first = TinyJit(double)
    for i in range(3):
        assert first(Tensor([float(i)]).realize()).item() == 2 * i
    second = how(first)
    assert second is not first and first.captured and not second.captured
    for i in range(4):
        assert second(Tensor([i, i + 0.5]).realize()).tolist() == [2 * i, 2 * i + 1]
    assert second.captured


def test_a_decorated_function_is_pickled_by_its_name():
    assert pickled(triple) is triple


class Network:
    def __init__(self):
        self.layers = [nn.Linear(3, 4), nn.BatchNorm(4), nn.LSTMCell(4, 2)]
        self.last = self.layers[0]
        self.run = TinyJit(double)

    def __call__(self, x):
        return self.layers[2](self.layers[1](self.layers[0](x)).relu())[0]


def train(model, opt, steps):
    losses = []
    x, y = Tensor(np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)), Tensor([0, 1, 1, 0, 1])
    with Tensor.train():
        for _ in range(steps):
            opt.zero_grad()
            loss = model(x).cross_entropy(y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
    return losses


OPTIMIZERS = {
    "sgd": lambda p: nn.optim.SGD(p, 0.1, momentum=0.9),
    "adamw": lambda p: nn.optim.AdamW(p, 0.05),
    "rmsprop": lambda p: nn.optim.RMSprop(p, 0.01, momentum=0.5, centered=True),
    "lamb": lambda p: nn.optim.LAMB(p, 0.05),
    "lars": lambda p: nn.optim.LARS(p, 0.05),
    "group": lambda p: nn.optim.OptimizerGroup(nn.optim.SGD(p[:2], 0.1), nn.optim.Adam(p[2:])),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_model_and_its_optimizer_go_on_as_the_original(device, name, how):
    model = Network()
    for t in nn.state.get_parameters(model):
        t.replace(t.clone()).realize()  # no constants, whose kernels round otherwise than those of memory
    params = nn.state.get_parameters([model.layers[0], model.layers[2]])
    opt = OPTIMIZERS[name](params)
    train(model, opt, 2)
    other, other_opt = COPIES[how]((model, opt))
    assert other.last is other.layers[0] is not model.layers[0]
    assert other_opt.params[0] is other.layers[0].weight
    want = train(model, opt, 3)
    before = nn.state.get_state_dict(model)["layers.0.weight"].tolist()
    assert train(other, other_opt, 3) == want
    assert other.layers[0].weight.tolist() == before == model.layers[0].weight.tolist()
    train(other, other_opt, 1)
    assert model.layers[0].weight.tolist() == before != other.layers[0].weight.tolist()
    assert other.run(Tensor([2.0])).item() == 4


@pytest.mark.parametrize("how", COPIES)
def test_a_schedule_goes_on_with_its_optimizer(how):
    opt = nn.optim.SGD([Tensor([1.0])], 1.0)
    schedule = nn.optim.ExponentialLR(opt, 0.5)
    schedule.step()
    other, other_opt = COPIES[how]((schedule, opt))
    other.step()
    assert other_opt.lr.item() == 0.25 and opt.lr.item() == 0.5
