"""Examples of docstrings as data."""

from __future__ import annotations

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


def test_a_call_with_arguments_and_options() -> None:
    example = example_of(documented(">>> Tensor([1.0, -2.0]).sum(0, keepdim=True).tolist()\n[-1.0]"))
    of = call("sum", tensor(1.0, -2.0), {"value": 0}, keepdim={"value": True})
    assert example == {"read": "tolist", "of": of, "result": [-1.0]}


def test_properties_operators_and_layers() -> None:
    example = example_of(documented('>>> (Tensor([1], dtype="int8") @ Tensor.ones(1).T).item()\n1'))
    ones = {"get": "T", "on": call("ones", "Tensor", {"value": 1})}
    assert example is not None and example["of"] == call("matmul", tensor(1, dtype="int8"), ones)
    example = example_of(documented(">>> nn.Linear(3, 4)(Tensor.ones(3)).shape\n(4,)"))
    linear = {"new": "nn.Linear", "args": [{"value": 3}, {"value": 4}], "options": {}}
    ones = call("ones", "Tensor", {"value": 3})
    assert example == {"read": "shape", "of": call("__call__", linear, ones), "result": [4]}


def test_what_is_read_of_each_tensor() -> None:
    example = example_of(documented(">>> [t.item() for t in Tensor([1.0, 3.0]).aminmax()]\n[1.0, 3.0]"))
    of = call("aminmax", tensor(1.0, 3.0))
    assert example == {"read": "item", "each": True, "of": of, "result": [1.0, 3.0]}


@pytest.mark.parametrize(
    "text",
    [
        "No example.",
        ">>> x = Tensor([1])\n>>> x.item()\n1",
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
    assert example_of(Tensor.flip) == {
        "read": "tolist",
        "of": call(
            "flip", {"new": "Tensor", "args": [{"list": [row(1, 2), row(3, 4)]}], "options": {}}, {"value": 0}
        ),
        "result": [[3, 4], [1, 2]],
    }
    assert example_of(nn.Embedding) is not None


def row(*values: int) -> dict[str, Any]:
    return {"list": [{"value": v} for v in values]}
