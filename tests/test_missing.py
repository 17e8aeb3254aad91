"""What an error says of a name that torch or tinygrad has and that is not here."""

from __future__ import annotations

import copy
import functools
import importlib
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import polygrad
from polygrad import Tensor, missing, missing_names, nn

X, LAYER = Tensor([1.0]), nn.Linear(2, 2)
CASES: list[tuple[Callable[[], Any], str]] = [
    (lambda: X.cpu(), "'Tensor' has no attribute 'cpu': use `x.to('CPU')`"),
    (lambda: X.relu_(), "'Tensor' has no attribute 'relu_': use `x.assign(x.relu(...))`"),
    (lambda: Tensor.hstack, "class 'Tensor' has no attribute 'hstack': use `Tensor.cat(..., dim=1)`"),
    (lambda: X.coalesce(), "'Tensor' has no attribute 'coalesce': no sparse layouts"),
    (lambda: nn.ReLU, "module 'polygrad.nn' has no attribute 'ReLU': use `Tensor.relu`"),
    (lambda: nn.Module, "no attribute 'Module': any object that has Tensors"),
    (
        lambda: LAYER.parameters(),
        "'Linear' has no attribute 'parameters': use `nn.state.get_parameters(model)`",
    ),
    (lambda: LAYER.eval(), "'Linear' has no attribute 'eval': outside of `Tensor.train()`"),
    (lambda: polygrad.from_numpy, "module 'polygrad' has no attribute 'from_numpy': use `Tensor(array)`"),
    (lambda: nn.optim.SparseAdam, "use `nn.optim.Adam`"),
    (lambda: polygrad.zeros(3), "module 'polygrad' has no attribute 'zeros': use `Tensor.zeros`"),
    (lambda: polygrad.no_grad(), "use `Tensor.no_grad`"),
    (lambda: polygrad.float32, "use `dtypes.float32`"),
    (lambda: polygrad.Linear(2, 2), "use `nn.Linear`"),
    (lambda: polygrad.Adam, "use `nn.optim.Adam`"),
    (lambda: nn.functional, "the methods of `Tensor`"),
    (lambda: nn.relu, "use `Tensor.relu`"),
    (lambda: nn.AdamW, "use `nn.optim.AdamW`"),
    (lambda: nn.optim.lr_scheduler, "the schedulers in `nn.optim`"),
    (lambda: nn.optim.get_parameters, "use `nn.state.get_parameters`"),
    (lambda: X.astype("float16"), "use `x.cast(dtype)`"),
    (lambda: X.tobytes(), "use `bytes(x.data())`"),
]


@pytest.mark.parametrize("i", range(len(CASES)))
def test_it_says_what_there_is_instead(i: int) -> None:
    with pytest.raises(AttributeError) as error:
        CASES[i][0]()
    assert CASES[i][1] in str(error.value)


def test_what_is_said_to_be_here_is_here() -> None:
    for prefix, names in missing_names.HERE.items():
        owner = functools.reduce(getattr, prefix[:-1].split("."), polygrad)
        assert [n for n in names.split() if not hasattr(owner, n)] == []
    for place, names in missing._OTHERS.items():
        owner = Tensor if place == "Tensor" else importlib.import_module(place)
        there = {n for n in names if n in dir(owner)}
        assert there <= ({"optim"} if place == "polygrad.nn" else set()), place


@pytest.mark.parametrize("owner", [X, Tensor, LAYER, nn, nn.optim, polygrad])
def test_other_names_are_missing_as_ever(owner: Any) -> None:
    assert not hasattr(owner, "no_such_name") and getattr(owner, "no_such_name", 3) == 3
    with pytest.raises(AttributeError, match=r"no attribute 'no_such_name'$") as error:
        _ = owner.no_such_name
    assert error.value.name == "no_such_name"


def test_layers_are_copied_and_pickled_as_ever() -> None:
    for again in (copy.copy(LAYER), copy.deepcopy(LAYER), pickle.loads(pickle.dumps(LAYER))):
        assert again.weight.tolist() == LAYER.weight.tolist()
