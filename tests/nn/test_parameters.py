"""Parameters are leaves that require gradients, buffers are not trained: in every layer, whatever is read."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from polygrad import Tensor, TinyJit, compile_step, nn
from polygrad.engine.stats import stats
from polygrad.errors import ArgumentError, ShapeError
from polygrad.nn.state import get_parameters, get_state_dict, load_state_dict, model_to, safe_load, safe_save

LAYERS = {
    "Linear": lambda **kw: nn.Linear(4, 3, **kw),
    "Bilinear": lambda **kw: nn.Bilinear(3, 4, 2, **kw),
    "Embedding": lambda **kw: nn.Embedding(5, 3, **kw),
    "Conv1d": lambda **kw: nn.Conv1d(2, 3, 2, **kw),
    "Conv2d": lambda **kw: nn.Conv2d(2, 3, 2, **kw),
    "Conv3d": lambda **kw: nn.Conv3d(2, 3, 2, **kw),
    "ConvTranspose1d": lambda **kw: nn.ConvTranspose1d(2, 3, 2, **kw),
    "ConvTranspose2d": lambda **kw: nn.ConvTranspose2d(2, 3, 2, **kw),
    "ConvTranspose3d": lambda **kw: nn.ConvTranspose3d(2, 3, 2, **kw),
    "BatchNorm": lambda **kw: nn.BatchNorm(3, **kw),
    "LayerNorm": lambda **kw: nn.LayerNorm((2, 3), **kw),
    "LayerNorm2d": lambda **kw: nn.LayerNorm2d(3, **kw),
    "RMSNorm": lambda **kw: nn.RMSNorm(3, **kw),
    "GroupNorm": lambda **kw: nn.GroupNorm(2, 4, **kw),
    "InstanceNorm": lambda **kw: nn.InstanceNorm(3, **kw),
    "LSTMCell": lambda **kw: nn.LSTMCell(3, 2, **kw),
    "LSTM": lambda **kw: nn.LSTM(3, 2, 2, bidirectional=True, **kw),
    "GRU": lambda **kw: nn.GRU(3, 2, **kw),
    "MultiheadAttention": lambda **kw: nn.MultiheadAttention(4, 2, kdim=3, vdim=5, **kw),
    "TransformerBlock": lambda **kw: nn.TransformerBlock(4, 2, **kw),
}


def test_every_layer_is_tested():
    found = {name for name in nn.__all__ if isinstance(getattr(nn, name), type)}
    assert found == set(LAYERS) | {"BatchNorm2d", "BatchNorm3d", "PackedWeight"}  # the last is no layer


@pytest.mark.parametrize("name", LAYERS)
def test_parameters_are_leaves_that_require_gradients_and_launch_nothing(name):
    before = stats.launches
    layer = LAYERS[name]()
    assert stats.launches == before
    parameters = [p for p in get_parameters(layer) if p.requires_grad is not False]
    assert parameters and all(p.requires_grad is True and p.is_leaf for p in parameters)
    statistics = [t for t in get_state_dict(layer).values() if t.requires_grad is False]
    assert bool(statistics) == (name == "BatchNorm")
    assert len({p.uop for p in parameters}) == len(parameters)  # equal constants would be one node


@pytest.mark.parametrize("name", LAYERS)
def test_layers_take_a_dtype(name):
    layer = LAYERS[name](dtype="float16")
    for key, t in get_state_dict(layer).items():
        assert t.dtype == ("int64" if "num_batches" in key else "float16") or "running" in key
    with pytest.raises(ArgumentError, match="float"):
        LAYERS[name](dtype="int32")


READINGS = {
    "nothing": lambda y: None,
    "item": lambda y: y.item(),
    "realize": lambda y: y.realize(),
    "numpy": lambda y: y.numpy(),
    "tolist": lambda y: y.tolist(),
    "print": lambda y: repr(y.realize()),
    "bool": lambda y: bool(y > 0),
}


@pytest.mark.parametrize("reading", READINGS)
def test_reading_a_loss_changes_no_gradient(reading):
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    layers = [nn.Linear(4, 6), nn.LayerNorm(6), nn.BatchNorm(6)]
    theirs = [torch.nn.Linear(4, 6), torch.nn.LayerNorm(6), torch.nn.BatchNorm1d(6)]
    for a, b in zip(layers, theirs, strict=True):
        b.load_state_dict({k: torch.tensor(v.numpy()) for k, v in get_state_dict(a).items()})
    with Tensor.train():
        y, z = Tensor(x), torch.tensor(x)
        for a, b in zip(layers, theirs, strict=True):
            y, z = a(y), b(z)
        y, z = y.tanh().mean(), z.tanh().mean()
        READINGS[reading](y)
        y.backward()
    z.backward()
    for a, b in zip(layers, theirs, strict=True):
        for key, p in b.named_parameters():
            np.testing.assert_allclose(get_state_dict(a)[key].grad.numpy(), p.grad.numpy(), atol=3e-6)
        for key, t in b.named_buffers():
            np.testing.assert_allclose(get_state_dict(a)[key].numpy(), t.numpy(), rtol=1e-5, atol=3e-6)


def test_freezing_leaves_a_layer_as_it_is_and_thawing_trains_it():
    Tensor.manual_seed(0)
    layers, x = [nn.Linear(3, 3), nn.Linear(3, 1)], Tensor.randn(4, 3)
    for p in get_parameters(layers[0]):
        p.requires_grad_(False)
    opt = nn.optim.Adam(get_parameters(layers), 0.1)
    frozen = layers[0].weight.numpy()

    def step():
        with Tensor.train():
            opt.zero_grad()
            layers[1](layers[0](x).tanh()).square().mean().backward()
            opt.step()

    step()
    assert layers[0].weight.grad is None and (layers[0].weight.numpy() == frozen).all()
    assert len(opt.params) == 2 and len(get_parameters(layers)) == 4
    for p in get_parameters(layers[0]):
        p.requires_grad_()
    step()
    assert (layers[0].weight.numpy() != frozen).all() and opt.params == get_parameters(layers)
    assert [m.shape for m in opt.m] == [p.shape for p in opt.params]


def test_tied_weights_are_one_parameter_with_the_sum_of_both_gradients():
    class Tied:
        def __init__(self):
            self.embedding, self.out = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
            self.out.weight = self.embedding.weight

    model, other = Tied(), Tied()
    assert len(nn.optim.SGD(get_parameters(model)).params) == 1 and len(get_state_dict(model)) == 2
    load_state_dict(model, get_state_dict(other))
    assert model.out.weight is model.embedding.weight
    weight = torch.tensor(model.out.weight.numpy(), requires_grad=True)
    index = np.array([1, 2, 1])
    (torch.nn.functional.embedding(torch.tensor(index), weight) @ weight.T).sin().sum().backward()
    model.out(model.embedding(Tensor(index))).sin().sum().backward()
    np.testing.assert_allclose(model.out.weight.grad.numpy(), weight.grad.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("is_training", [False, True])
def test_running_statistics_are_not_trained_when_a_model_is_thawed(is_training):
    """`requires_grad_()` of all that get_parameters finds, and steps, in evaluation mode too, where the
    statistics are in the result."""
    Tensor.manual_seed(0)
    model, x = [nn.Linear(2, 3, bias=False), nn.BatchNorm(3)], np.float32([[1, 2], [3, -1], [0, 4]])
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3, bias=False), torch.nn.BatchNorm1d(3)).train(
        is_training
    )
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in get_state_dict(model).items()})
    for wanted in (False, True):
        for p in get_parameters(model):
            p.requires_grad_(wanted)
    ours = nn.optim.AdamW(get_parameters(model), 0.1, weight_decay=0.1)
    other = torch.optim.AdamW(theirs.parameters(), 0.1, weight_decay=0.1)
    for _ in range(3):
        with Tensor.train(is_training):
            loss = Tensor(x).sequential(model).sin().sum()
        with Tensor.train():
            ours.zero_grad()
            loss.backward()
            ours.step()
        other.zero_grad()
        theirs(torch.tensor(x)).sin().sum().backward()
        other.step()
    for name, t in theirs.state_dict().items():
        np.testing.assert_allclose(get_state_dict(model)[name].numpy(), t.numpy(), rtol=1e-3, atol=1e-4)
    assert model[1].running_mean.grad is None


def test_loading_keeps_leaves_dtypes_and_what_is_frozen(tmp_path):
    model = [nn.Linear(2, 2, dtype="float16"), nn.BatchNorm(2)]
    model[0].bias.requires_grad_(False)
    opt = nn.optim.SGD(get_parameters(model), 1.0)
    saved = {k: t.float() + 1 for k, t in get_state_dict(model).items()}
    safe_save(saved, tmp_path / "m.safetensors")
    load_state_dict(model, safe_load(tmp_path / "m.safetensors"))
    weight, bias = model[0].weight, model[0].bias
    assert weight.dtype == "float16" and model[1].num_batches_tracked.item() == 1
    assert (weight.requires_grad, bias.requires_grad, weight._derived) == (True, False, False)
    assert model[1].running_mean.requires_grad is False and len(opt.params) == 3
    before = weight.numpy()
    with Tensor.train():
        model[0](Tensor.ones(1, 2, dtype="float16")).sum().backward()
        opt.step()
    np.testing.assert_allclose(weight.numpy(), before - 1)
    with pytest.raises(ShapeError):
        load_state_dict(nn.Linear(3, 2), get_state_dict(nn.Linear(2, 3)))


class Attention:
    """A model of plain Python: a parameter, a table, a cache, and a statistic."""

    def __init__(self):
        self.weight = nn.Parameter(Tensor.ones(2, 2))
        self.table = nn.Buffer(Tensor.arange(4).float(), persistent=False)
        self.caches = [nn.Buffer(Tensor.zeros(3, 2), persistent=False)]
        self.mean = nn.Buffer(Tensor.zeros(2))


def test_buffers_are_not_trained_and_saved_only_if_persistent():
    model = Attention()
    assert list(get_state_dict(model)) == ["weight", "mean"]
    assert list(get_state_dict(model, buffers=True)) == ["weight", "table", "caches.0", "mean"]
    assert list(get_state_dict(model, buffers=False)) == ["weight"]
    assert get_parameters(model) == [model.weight] or get_parameters(model)[0] is model.weight
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert list(get_state_dict(copied)) == ["weight", "mean"]
        assert len(get_parameters(copied)) == 1
    assert list(get_state_dict(copy.copy(model.mean), "x", buffers=False)) == []
    load_state_dict(model, {"weight": Tensor.zeros(2, 2), "mean": Tensor.ones(2)})
    with pytest.raises(ArgumentError, match="unknown"):
        load_state_dict(model, get_state_dict(model, buffers=True))
    with pytest.raises(ArgumentError, match="buffer"):
        nn.optim.SGD([model.weight, model.mean])


def test_what_is_computed_from_a_buffer_is_none():
    model = Attention()
    assert len(get_parameters([model.mean + 1, model.mean.reshape(2, 1), model.mean.clone()])) == 3


def test_a_cache_is_written_in_captured_functions_and_gets_no_gradient():
    model, x = Attention(), Tensor([[1.0, 2.0]])

    @TinyJit
    def step(x, at):
        with Tensor.no_grad():
            model.caches[0].assign(model.caches[0] + (x @ model.weight).expand(3, 2))
        return model.caches[0].sum()

    assert [step(x, Tensor([i])).item() for i in range(4)] == [18.0, 36.0, 54.0, 72.0]
    (model.weight * model.caches[0].sum() * model.mean.sum()).sum().backward()
    assert model.weight.grad is not None and model.caches[0].grad is None and model.mean.grad is None


def test_parameters_of_constants_numbers_and_lazy_values():
    ones = Tensor.ones(3)
    a, b, c = nn.Parameter(ones), nn.Parameter(ones), nn.Parameter([1.0, 2.0])
    d, e = nn.Parameter(Tensor.ones(3).half()), nn.Parameter(Tensor.arange(3).float())
    source = Tensor([1.0, 2.0], requires_grad=True)
    f = nn.Parameter(source * 2)
    sum((x * 2).sum().float() for x in (a, c, d, e, f)).backward()
    assert b.grad is None and source.grad is None and d.dtype == "float16"
    assert [x.grad.tolist() for x in (a, c, e, f)] == [[2.0] * 3, [2.0] * 2, [2.0] * 3, [2.0] * 2]
    assert nn.Parameter(ones, requires_grad=False).requires_grad is False
    with pytest.raises(ArgumentError, match="floats"):
        nn.Parameter(Tensor([1, 2]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_model_to_converts_in_place_and_the_optimizer_goes_on(dtype):
    model = [nn.Linear(2, 2), nn.BatchNorm(2), Attention()]
    before = get_state_dict(model, buffers=True)
    opt = nn.optim.SGD(get_parameters(model), 0.5)
    (model[0].weight.sum() * 2).backward()
    assert model_to(model, dtype=dtype) is model
    after = get_state_dict(model, buffers=True)
    assert all(after[k] is t for k, t in before.items())
    assert all(t.dtype == ("int64" if "num_batches" in k else dtype) for k, t in after.items())
    assert model[0].weight.grad.dtype == dtype and model[0].weight.requires_grad
    expected = model[0].weight.numpy() - 1
    with Tensor.train():
        opt.step()
    np.testing.assert_allclose(model[0].weight.numpy(), expected, rtol=0.01)
    opt.zero_grad()
    model[0](Tensor.ones(1, 2, dtype=dtype)).sum().backward()
    assert model[0].weight.grad.dtype == dtype
    with pytest.raises(ArgumentError, match="float"):
        model_to(model, dtype="int32")


def test_model_to_moves_models_and_optimizers():
    model = [nn.Linear(2, 2), nn.BatchNorm(2)]
    opt = nn.optim.Adam(get_parameters(model), 0.5)
    want = {k: t.numpy() for k, t in get_state_dict(model).items()}
    model_to(opt, "INTERP")
    model_to(model, "INTERP")
    for k, t in get_state_dict(model).items():
        assert t.device == "INTERP"
        np.testing.assert_array_equal(t.numpy(), want[k])
    with Tensor.train():
        model[1](model[0](Tensor.ones(3, 2, device="INTERP"))).square().sum().backward()
        opt.step()
    assert model[0].weight.device == "INTERP" and opt.m[0].device == "INTERP"


def test_running_statistics_are_data_in_loops_of_training_and_without():
    layers = [nn.Linear(3, 3), nn.BatchNorm(3)]
    opt = nn.optim.SGD(get_parameters(layers), 0.1)
    x, runs = Tensor.randn(4, 3).realize(), []
    with Tensor.train():
        for _ in range(4):
            opt.zero_grad()
            before = stats.runs
            layers[1](layers[0](x)).square().mean().backward()
            opt.step()
            runs.append(stats.runs - before)
            assert all(len(t.uop.toposort()) < 8 for t in get_state_dict(layers).values())  # no graphs
    assert runs[1:] == [1, 1, 1]  # the first computes the statistics that there are
    with Tensor.no_grad():
        assert layers[1](layers[0](x)).requires_grad is False


def test_a_compiled_step_keeps_batch_norm_and_a_cache():
    results = []
    for compiled in (False, True):
        Tensor.manual_seed(3)
        model, x = [nn.Linear(3, 2), nn.BatchNorm(2), Attention()], Tensor.randn(4, 3)

        def loss_of(model, x):
            y = model[1](model[0](x))
            with Tensor.no_grad():
                model[2].caches[0].assign(model[2].caches[0] + y[:3].detach())
            return ((y @ model[2].weight) ** 2).mean()

        opt = nn.optim.Adam(get_parameters(model), 0.1)
        step = compile_step(loss_of, model, opt, x) if compiled else None
        for _ in range(4):
            if step is not None:
                step.run(x)
                continue
            with Tensor.train():
                opt.zero_grad()
                loss_of(model, x).backward()
                opt.step()
        results.append({k: t.tolist() for k, t in get_state_dict(model, buffers=True).items()})
    assert results[0] == results[1]
