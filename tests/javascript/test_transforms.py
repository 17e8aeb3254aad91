"""Functions of functions in JavaScript, on every host: compared with Python."""

from __future__ import annotations

from typing import Any

import javascript_transforms as expected
import pytest
from javascript_compare import compare, is_error
from javascript_hosts import built

pytestmark = [pytest.mark.e2e, built]


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ("vmap", expected.batched),
        ("checkpoint", expected.recomputed),
        ("customGradient", expected.own_gradients),
        ("hooks", expected.hooked),
        ("derivatives", expected.derived),
    ],
)
def test_a_case_gives_what_python_computes_within_1e_4(
    results: dict[str, Any], case: str, wanted: Any
) -> None:
    assert "failed" not in results[case], results[case]
    compare(results[case], wanted(), case)


def test_functions_that_do_not_fit_are_errors_by_name(results: dict[str, Any]) -> None:
    vmap = results["vmap"]
    assert is_error(vmap["sizes"], "ShapeError", "vmap: expected batches of one size, got 2 and 3")
    assert is_error(vmap["none"], "ShapeError", "vmap: expected a tensor with an axis of examples, got none")
    assert is_error(vmap["count"], "ArgumentError", "vmap: expected inAxes for 1 arguments, got 2")
    assert is_error(vmap["function"], "ArgumentError", "vmap: expected a function, got number")
    assert is_error(vmap["promise"], "ArgumentError", "vmap: expected it to return at once, got a promise")
    assert is_error(vmap["own"], "RangeError", "mine")
    checkpoint, own = results["checkpoint"], results["customGradient"]
    assert is_error(checkpoint["integers"], "GradientError", "expected a float Tensor as the result")
    assert is_error(checkpoint["nothing"], "GradientError", "expected a float Tensor as the result, got None")
    assert own["wrong"]["name"] in ("GradientError", "ShapeError")
    assert is_error(
        own["result"], "GradientError", "customGradient: expected a function that returns tensors"
    )
    assert is_error(
        results["hooks"]["without"], "GradientError", "expected a Tensor that requires a gradient"
    )
    derivatives = results["derivatives"]
    assert is_error(derivatives["primals"], "ArgumentError", "vjp: primals: expected an array of arguments")
    assert is_error(derivatives["integers"], "GradientError", "jacrev: expected Tensors of floats, got int32")
    assert is_error(derivatives["shapes"], "ShapeError", "vjp: cotangents: expected shapes")
