"""Algebra on scalar nodes: constants folded, identities, index arithmetic brought to one form.

Rows are grouped by op, an equation above each. The rulebook:
- no row makes worse code: none adds operations, but where others then absorb them (an `index` product is
  distributed over a sum, a constant moves out of a division);
- one canonical order: constants stand right of a commutative op; other operands stay in the order they came.
  Sums of `dtypes.index` lean left, like terms collected where the first stood, the constant last;
- a comparison with a constant is `x < c` or `c < x`, never a negated one;
- `index` never overflows; a user's integers wrap, and a row that needs more than ring arithmetic proves by
  bounds that nothing wrapped. IDIV and MOD are floor, x // 0 = x % 0 = 0;
- floats: no row changes a bit, for which rows fire depends on what a kernel happens to hold, and values that
  are computed twice are compared. x*0 stays (NaN, inf). The sign of a zero alone may: x + 0 -> x is taken, so
  -0.0 + 0.0 gives -0.0 here.

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
    """`x` under `symbolic`, to a fixed point.

    Results are memoised, so a new node over simplified sources costs little more than its own rows. The memo
    keeps its nodes alive; it is dropped when it grows past a limit and by `clear_caches`.
    """
    found = _memo.get(x)
    if found is not None:
        return found
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
