"""The order in which einsum contracts: the fewest products, and the same result in any order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from polygrad import Tensor
from polygrad.tensor.core.contraction import contraction_path
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import max_numel

SIZES = dict(zip("abcdefg", (2, 3, 4, 5, 6, 7, 3), strict=True))


def least(terms: Sequence[str], output: str) -> int:
    """The fewest products, found by trying every order."""
    if len(terms) == 1:
        return 0
    best = None
    for i, j in combinations(range(len(terms)), 2):
        rest = [t for k, t in enumerate(terms) if k not in (i, j)]
        both = set(terms[i] + terms[j])
        joined = "".join(c for c in both if c in output + "".join(rest))
        total = math.prod(SIZES[c] for c in both) + least([*rest, joined], output)
        best = total if best is None else min(best, total)
    assert best is not None
    return best


def taken(terms: Sequence[str], output: str) -> int:
    """The products of the path that is chosen."""
    left, total = list(terms), 0
    for i, j in [*contraction_path(terms, output, SIZES), (0, 1)]:
        both = set(left[i] + left[j])
        total += math.prod(SIZES[c] for c in both)
        del left[j], left[i]
        left.append("".join(c for c in both if c in output + "".join(left)))
    assert len(left) == 1
    return total


FORMULAS = (
    "ab,bc,cd->ad", "ab,bc,cd,de->ae", "ab,bc,cd,de,ef->af", "a,ab,b->", "ab,ac,ad->bcd", "abc,cd,db->a",
    "ab,cb,dc,ad->", "ab,ab,ab->a", "a,b,c->abc", "abc,abd,cde,e->ae", "ab,bc,ca->", "ab,cd,ef->",
)  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS)
def test_the_path_takes_the_fewest_products(formula: str) -> None:
    left, _, output = formula.partition("->")
    assert taken(left.split(","), output) == least(left.split(","), output)


@pytest.mark.parametrize("formula", FORMULAS)
def test_the_result_is_numpys(formula: str) -> None:
    rng = np.random.default_rng(3)
    xs = [rng.normal(size=[SIZES[c] for c in s]) for s in formula.partition("->")[0].split(",")]
    got = Tensor.einsum(formula, *[Tensor(x) for x in xs])
    np.testing.assert_allclose(got.numpy(), np.einsum(formula, *xs), rtol=1e-9, atol=1e-9)
    whole = [np.asarray(np.round(3 * x), np.int32) for x in xs]
    exact = Tensor.einsum(formula, *[Tensor(x) for x in whole])
    np.testing.assert_array_equal(exact.numpy(), np.einsum(formula, *whole))


def test_many_operands_are_joined_greedily() -> None:
    terms = ["ab", "bc", "cd", "de", "ef", "fg", "ga", "ac"]
    rng = np.random.default_rng(3)
    xs = [rng.normal(size=[SIZES[c] for c in s]) for s in terms]
    formula = ",".join(terms) + "->"
    assert len(contraction_path(terms, "", SIZES)) == len(terms) - 2
    got = Tensor.einsum(formula, *[Tensor(x) for x in xs]).item()
    assert got == pytest.approx(np.einsum(formula, *xs), rel=1e-9)


def test_small_integers_wrap_as_they_did() -> None:
    x = Tensor([[100, 100]], dtype="int8")
    assert Tensor.einsum("ab,ab,ab->", x, x, x).dtype == "int32"
    assert Tensor.einsum("ab,ab,ab->", x, x, x).item() == 2 * (100**3 % 256)


def test_a_chain_of_products_is_products_of_matrices() -> None:
    a, b, c = (Tensor.ones(64, 64).contiguous().realize() for _ in range(3))
    out = Tensor.einsum("ij,jk,kl->il", a, b, c)
    assert max(math.prod(n.shape) for n in out.uop.toposort()) == 64**3  # and not 64**4
    assert out.numpy().tolist() == np.full((64, 64), 64.0**2).tolist()


def test_what_one_operand_has_alone_is_summed_first():
    out = Tensor.einsum("ij,jk->i", Tensor.ones(50, 40), Tensor.ones(40, 30))
    sums = [n.src[0] for n in out.uop.toposort() if n.op is Ops.REDUCE_AXIS]
    assert max(max_numel(x.shape) for x in sums) == 50 * 40
