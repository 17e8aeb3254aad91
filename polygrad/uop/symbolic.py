"""Algebra on scalar nodes: constant folding, identities, and one form of index arithmetic.

Rows are grouped by op, with an equation above each. The rules of the tables:
- No row makes worse code. A row adds operations only if other rows then absorb them (an `index` product is
  distributed over a sum, a constant moves out of a division).
- There is one canonical order. Constants are the right operands of commutative ops; other operands keep
  their order. Sums of `dtypes.index` associate to the left. Like terms are collected at the place of the
  first; the constant is last.
- A comparison with a constant is `x < c` or `c < x`, never a negation.
- `index` never overflows. A user's integers wrap: a row that needs more than ring arithmetic proves by bounds
  that nothing wraps. IDIV and MOD are floor division; x // 0 = x % 0 = 0.
- No row changes a bit of a float, because the rows that fire depend on the rest of the kernel, and equal
  values from different kernels are compared. x*0 is not simplified (NaN, infinity). Only the sign of a zero
  may change: with x + 0 -> x, -0.0 + 0.0 gives -0.0.

Nodes are kernel nodes: every value is a scalar. Knows nothing of schedules or devices. After tinygrad's
`symbolic`; the rulebook is in the spirit of Cranelift's.
"""

from __future__ import annotations

from typing import Any

from polygrad.uop.arithmetic import arithmetic
from polygrad.uop.logic import logic
from polygrad.uop.node import UOp
from polygrad.uop.rewrite import rewrite_into

symbolic = arithmetic + logic

_MEMO_LIMIT = 1 << 15
_memo: dict[UOp, UOp] = {}
memos: list[dict[Any, UOp]] = [_memo]  # all that `clear_caches` clears


def simplify(x: UOp) -> UOp:
    """Simplify `x` by `symbolic`, to a fixed point.

    Results are memoised, so a new node over simplified sources costs little more than its own rows. The memo
    keeps its nodes alive; it is dropped when it grows past a limit and by `clear_caches`.
    """
    simplified = _memo.get(x)
    if simplified is not None:
        return simplified
    if not x.src:
        return x
    out = rewrite_into(_memo, x, symbolic)
    if len(_memo) > _MEMO_LIMIT:
        _memo.clear()
    return out


def clear_caches() -> None:
    """Forget every simplified node, so that `node.collect` can free them."""
    for memo in memos:
        memo.clear()
