"""nn.init: gains and ranges are torch's, spreads within a few per cent; refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from polygrad import Tensor, TinyJit
from polygrad.errors import ArgumentError, DTypeError, ShapeError
from polygrad.nn import init

pytestmark = pytest.mark.usefixtures("default_device")
SHAPE = (60, 20, 3, 2)
# name -> arguments; torch's function has the same name
RANDOM = {
    "uniform_": (-0.5, 2.0),
    "normal_": (1.0, 0.5),
    "trunc_normal_": (0.5, 2.0, -1.0, 3.0),
    "xavier_uniform_": (1.5,),
    "xavier_normal_": (0.5,),
    "kaiming_uniform_": (0.2,),
    "kaiming_normal_": (0.0, "fan_out", "relu"),
}


@pytest.mark.parametrize("name", RANDOM)
def test_numbers_are_spread_as_torchs_within_5_per_cent(device, name):
    torch.manual_seed(0)
    t = Tensor.zeros(SHAPE)
    assert getattr(init, name)(t, *RANDOM[name]) is t
    want = getattr(torch.nn.init, name)(torch.zeros(SHAPE), *RANDOM[name]).numpy()
    got = t.numpy()
    assert got.std() == pytest.approx(want.std(), rel=0.05)
    assert got.mean() == pytest.approx(want.mean(), abs=0.05 * float(want.std()) + 1e-3)
    if "normal" not in name or "trunc" in name:
        assert got.max() == pytest.approx(want.max(), rel=0.02)
        assert got.min() == pytest.approx(want.min(), rel=0.02)


def test_truncated_normal_has_the_distribution_of_scipys_within_2_per_cent():
    x = np.sort(init.trunc_normal_(Tensor.zeros(20000), 0, 1, -1.5, 0.5).numpy())
    a, b, p = math.erf(-1.5 / math.sqrt(2)), math.erf(0.5 / math.sqrt(2)), np.arange(20000) / 20000
    want = (np.vectorize(math.erf)(x / math.sqrt(2)) - a) / (b - a)
    assert abs(want - p).max() < 0.02 and x.min() >= -1.5 and x.max() <= 0.5


@pytest.mark.parametrize("name", ["linear", "conv2d", "conv_transpose1d", "sigmoid", "tanh", "relu", "selu"])
def test_gains_are_torchs(name):
    assert init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))


@pytest.mark.parametrize("slope", [None, 0.0, 0.2, 1.0])
def test_the_gain_of_a_leaky_relu(slope):
    want = torch.nn.init.calculate_gain("leaky_relu", slope)
    assert init.calculate_gain("leaky_relu", slope) == pytest.approx(want)


@pytest.mark.parametrize("shape", [(4, 4), (3, 8), (8, 3), (4, 2, 3)])
def test_orthogonal_rows_or_columns_within_1e_5(shape):
    x = init.orthogonal_(Tensor.zeros(shape), 2.0).numpy().reshape(shape[0], -1)
    x = x if x.shape[0] <= x.shape[1] else x.T
    np.testing.assert_allclose(x @ x.T, 4 * np.eye(len(x)), atol=1e-5)


def test_constants():
    t = Tensor.zeros(2, 3)
    assert init.ones_(t).tolist() == [[1.0] * 3] * 2 and init.constant_(t, 2.5).tolist() == [[2.5] * 3] * 2
    assert init.eye_(t).tolist() == [[1, 0, 0], [0, 1, 0]] and init.zeros_(t).tolist() == [[0.0] * 3] * 2
    assert init.zeros_(Tensor.ones(2, dtype="int32")).tolist() == [0, 0]


def test_it_writes_in_place_without_a_gradient():
    t = Tensor([1.0, 2.0]).realize()
    view = t[1:]
    init.constant_(t, 3.0)
    assert view.tolist() == [3] and t.requires_grad is None
    half = init.normal_(Tensor.zeros(1000, dtype="float16"))
    assert half.dtype == "float16" and 0.9 < half.float().numpy().std() < 1.1
    assert init.uniform_(Tensor.zeros(0, 3)).shape == (0, 3)


def test_a_captured_initialisation_draws_anew(device):
    t = Tensor.zeros(4).contiguous().realize()
    draw = TinyJit(lambda: init.kaiming_uniform_(t.reshape(2, 2)).realize())
    seen = [draw().tolist() for _ in range(4)]
    assert len({str(x) for x in seen}) == 4


X, T = (lambda *s: Tensor.zeros(*s)), (lambda *s: torch.zeros(*s))
REFUSED = {
    "uniform": (lambda: init.uniform_(X(3), 1.0, 0.0), lambda: torch.nn.init.uniform_(T(3), 1.0, 0.0)),
    "normal": (lambda: init.normal_(X(3), 0.0, -1.0), lambda: torch.nn.init.normal_(T(3), 0.0, -1.0)),
    "integers": (
        lambda: init.normal_(X(3).int()),
        lambda: torch.nn.init.normal_(T(3).int()),
    ),
    "fan_of_a_vector": (lambda: init.xavier_uniform_(X(3)), lambda: torch.nn.init.xavier_uniform_(T(3))),
    "mode": (
        lambda: init.kaiming_normal_(X(3, 3), mode="fan"),
        lambda: torch.nn.init.kaiming_normal_(T(3, 3), mode="fan"),
    ),
    "gain": (lambda: init.calculate_gain("sine"), lambda: torch.nn.init.calculate_gain("sine")),
    "eye": (lambda: init.eye_(X(3)), lambda: torch.nn.init.eye_(T(3))),
    "orthogonal": (lambda: init.orthogonal_(X(3)), lambda: torch.nn.init.orthogonal_(T(3))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_refused(name):
    with pytest.raises(Exception):  # noqa: B017  of many types
        REFUSED[name][1]()
    with pytest.raises((ArgumentError, ShapeError, DTypeError), match="expected"):
        REFUSED[name][0]()


@pytest.mark.parametrize(("a", "b", "std"), [(1.0, 1.0, 1.0), (0.0, 1.0, 0.0), (0.0, 1.0, -1.0)])
def test_a_truncated_normal_of_nothing_is_refused(a, b, std):
    with pytest.raises(ArgumentError, match="expected a < b"):
        init.trunc_normal_(X(3), 0.0, std, a, b)


@pytest.mark.parametrize("shape", [(4, 3, 3), (3, 5, 2, 3), (4, 2, 1, 3, 3)])
@pytest.mark.parametrize("groups", [1, 2])
def test_dirac_is_torchs(shape, groups):
    if shape[0] % groups:
        with pytest.raises(ShapeError, match="dirac_"):
            init.dirac_(Tensor.zeros(shape), groups)
        return
    want = torch.nn.init.dirac_(torch.empty(shape), groups).numpy()
    np.testing.assert_array_equal(init.dirac_(Tensor.ones(shape), groups).numpy(), want)


def test_sparse_has_so_many_zeros_in_each_column():
    t = init.sparse_(Tensor.zeros(50, 7), 0.29, std=2.0).numpy()
    assert ((t == 0).sum(0) == 15).all()
    assert t[t != 0].std() == pytest.approx(2.0, rel=0.15)
    assert len({tuple(column) for column in (t == 0).T.tolist()}) > 1
    for arguments in ((Tensor.zeros(2, 2), 1.5), (Tensor.zeros(2, 2), 0.5, -1.0)):
        with pytest.raises(ArgumentError, match="sparse_"):
            init.sparse_(*arguments)
    with pytest.raises(ShapeError, match="sparse_"):
        init.sparse_(Tensor.zeros(2), 0.5)
