"""Examples of docstrings as data."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from polygrad import Tensor, nn
from polygrad.manifest.examples import example_of


def documented(text: str) -> Any:
    def function() -> None: ...

    function.__doc__ = f"A function.\n\n{text}\n"
    return function


def tensor(*values: Any, **options: Any) -> dict[str, Any]:
    data = {"list": [{"float" if isinstance(v, float) else "value": v} for v in values]}
    return {"new": "Tensor", "args": [data], "options": {k: {"value": v} for k, v in options.items()}}


def call(name: str, on: Any, *args: Any, **options: Any) -> dict[str, Any]:
    return {"call": name, "on": on, "args": list(args), "options": options}


def new(name: str, *args: Any, **options: Any) -> dict[str, Any]:
    return {"new": name, "args": list(args), "options": options}


def shown(text: str) -> Any:
    """What the only step of an example shows, and its result."""
    steps = example_of(documented(text))
    assert steps is not None and [list(step) for step in steps] == [["show", "result"]]
    return steps[0]["show"], steps[0]["result"]


def test_a_call_with_arguments_and_options() -> None:
    of = call("sum", tensor(1.0, -2.0), {"value": 0}, keepdim={"value": True})
    text = ">>> Tensor([1.0, -2.0]).sum(0, keepdim=True).tolist()\n[-1.0]"
    assert shown(text) == ({"read": "tolist", "of": of}, [-1.0])


def test_properties_operators_and_layers() -> None:
    show, _ = shown('>>> (Tensor([1], dtype="int8") @ Tensor.ones(1).T).item()\n1')
    ones = {"get": "T", "on": call("ones", "Tensor", {"value": 1})}
    assert show == {"read": "item", "of": call("matmul", tensor(1, dtype="int8"), ones)}
    show, result = shown(">>> nn.Linear(3, 4)(Tensor.ones(3)).shape\n(4,)")
    linear = new("nn.Linear", {"value": 3}, {"value": 4})
    ones = call("ones", "Tensor", {"value": 3})
    assert (show, result) == ({"read": "shape", "of": call("__call__", linear, ones)}, [4])
    show, _ = shown(">>> (Tensor([1.0]) >= 2).tolist()\n[False]")
    assert show["of"] == call("ge", tensor(1.0), {"value": 2})
    show, result = shown(">>> Tensor([1]).half().dtype.name\n'float16'")
    assert (show, result) == ({"read": "dtype", "of": call("half", tensor(1))}, "float16")


def test_what_is_read_of_each_tensor() -> None:
    of = call("aminmax", tensor(1.0, 3.0))
    text = ">>> [t.item() for t in Tensor([1.0, 3.0]).aminmax()]\n[1.0, 3.0]"
    assert shown(text) == ({"read": "item", "each": True, "of": of}, [1.0, 3.0])


def test_digits_that_are_left_out_and_rounded_ones() -> None:
    item = {"read": "item", "of": tensor(0.1)}
    about = {"show": item, "result": 0.1, "about": True}
    assert example_of(documented(">>> Tensor([0.1]).item()\n0.1...")) == [about]
    assert example_of(documented(">>> round(Tensor([0.1]).item(), 2)\n0.1")) == [about]


def test_the_statements_of_a_program() -> None:
    text = """
    >>> w, state = nn.Parameter(Tensor([1.0])), {"lr": Tensor([1.0])}
    >>> rates = []
    >>> with Tensor.train():
    ...     w.sum().backward()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> for _ in range(2):
    ...     rates.append(round(state["lr"].item(), 3))
    >>> for loss in (0.5, 0.25):
    ...     w.assign(loss)
    >>> rates
    [1.0, 1.0]
    """
    w, rate = {"name": "w"}, {"get": "lr", "on": {"name": "state"}}
    loss, loop = {"name": "loss"}, {"list": [{"float": 0.5}, {"float": 0.25}]}
    made = {"list": [new("nn.Parameter", tensor(1.0)), {"object": {"lr": tensor(1.0)}}]}
    assert example_of(documented(inspect.cleandoc(text))) == [
        {"let": ["w", "state"], "be": made},
        {"let": "rates", "be": {"list": []}},
        {"within": call("train", "Tensor"), "body": [{"do": call("backward", call("sum", w))}]},
        {"times": 2, "body": [{"append": {"read": "item", "of": rate}, "to": "rates"}]},
        {"each": "loss", "of": loop, "body": [{"do": call("assign", w, loss)}]},
        {"show": {"name": "rates"}, "result": [1.0, 1.0], "about": True},
    ]


@pytest.mark.parametrize(
    "text",
    [
        "No example.",
        ">>> x = Tensor([1])",
        ">>> x, *y = Tensor([1, 2])\n>>> x.item()\n1",
        ">>> Tensor([1])[0].item()\n1",
        ">>> Tensor([1.0]).item(1)\nTraceback (most recent call last):\nTypeError",
        ">>> with Tensor.no_grad():\n...     y = Tensor([1])\n>>> y.item()\n1",
        ">>> Tensor([1])\n<Tensor>",
        ">>> Tensor([i for i in range(3)]).tolist()\n[0, 1, 2]",
        ">>> Tensor(*[1]).item()\n1",
        ">>> print(Tensor([1]).item())\n1",
        ">>> Tensor([1]).sum().item()\nnan",
        ">>> with Tensor.train():\n...     pass",
    ],
)
def test_other_forms_are_pythons_alone(text: str) -> None:
    assert example_of(documented(text)) is None


def test_public_docstrings_have_them() -> None:
    flip = call("flip", new("Tensor", {"list": [row(1, 2), row(3, 4)]}), {"value": 0})
    assert example_of(Tensor.flip) == [{"show": {"read": "tolist", "of": flip}, "result": [[3, 4], [1, 2]]}]
    assert example_of(nn.Embedding) is not None


def row(*values: int) -> dict[str, Any]:
    return {"list": [{"value": v} for v in values]}
