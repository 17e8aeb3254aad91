"""The op names of exp2 and log2 against those recorded from tinygrad (tests/parity/tinygrad_c2be31e.json)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from polygrad.codegen.lower.decompose import decompose
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.uop.args import Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.rewrite import graph_rewrite

RECORDED = Path(__file__).parent.parent / "parity" / "tinygrad_c2be31e.json"


def recorded(case: str, kernel: int) -> list[str]:
    cases: list[dict[str, Any]] = json.loads(RECORDED.read_text())["cases"]
    names: list[str] = next(c for c in cases if c["name"] == case)["kernels"][kernel]
    return names


def ours(op: Ops) -> Counter[str]:
    """The op names of the decomposition of one op on a float32, and nothing else."""
    x = UOp(Ops.PARAM, dtypes.float32, (), Param(0, 1))
    out = graph_rewrite(UOp(op, dtypes.float32, (x,)), decompose(Target("test"), optimized=False))
    return Counter(n.op.name for n in out.toposort() if n is not x)


def between(names: list[str], first: str, last: str) -> Counter[str]:
    """The op names after the last load that the run `first` follows, up to the last run `last`."""
    text = " ".join(names)
    return Counter(text.rsplit(first, 1)[1].rsplit(last, 1)[0].split())


def test_exp2_has_exactly_the_recorded_ops() -> None:
    names = recorded("exp2_1d", 0)
    arithmetic = between(names, "RANGE INDEX LOAD INDEX", "STORE END SINK")
    constants = names.count("CONST") - 1  # one is the size of the RANGE
    assert ours(Ops.EXP2) == arithmetic + Counter({"CONST": constants})


def test_exp2_with_a_gradient_has_one_more_product() -> None:
    plain = between(recorded("exp2_1d", 0), "LOAD INDEX", "STORE END SINK")
    assert between(recorded("grad_exp2_sum", 0), "LOAD INDEX", "STORE END SINK") == plain + Counter(
        {"MUL": 1}
    )


def test_log2_takes_fewer_ops_than_recorded() -> None:
    # The recorded form is off by up to 3.9 ulp, and no choice of operands in its sequence brings it to 2:
    # the main term is a product of a rounded quotient. Ours replaces it.
    sequence = between(
        recorded("cross_entropy_nonlast_axis", 1), "AFTER INDEX LOAD INDEX", "MUL STORE END END SINK"
    )
    log2 = ours(Ops.LOG2)
    log2.pop("CONST")
    assert (log2.total(), sequence.total()) == (34, 46)
