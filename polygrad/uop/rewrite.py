"""`graph_rewrite`: applies a table of patterns to a whole graph, to a fixed point.

It is iterative and memoised: each distinct node is visited once, and a node is only rebuilt if one of its
sources has changed. Knows nothing of the meaning of the patterns.
"""

from __future__ import annotations

from typing import Any

from polygrad.errors import InternalError
from polygrad.uop.node import UOp
from polygrad.uop.pattern import PatternMatcher

_NO_ROW: Any = object()


def graph_rewrite(root: UOp, pm: PatternMatcher) -> UOp:
    """Apply the rows of `pm` wherever they match in the graph of `root`, until none does; the new root.

        ADD(x, MUL(CONST 2, CONST 3))  ->  ADD(x, CONST 6)      with a row that folds constants

    A node is matched after its sources have been rewritten. Raises InternalError when a rewrite leads back to
    an earlier form of the node.
    """
    return rewrite_into({}, root, pm)


def rewrite_into(done: dict[UOp, UOp], root: UOp, pm: PatternMatcher) -> UOp:
    """`graph_rewrite` with a memo: `done` has the results of nodes, and gets the new ones."""
    becomes: dict[UOp, UOp] = {}  # by node: its replacement, or the node itself over its rewritten sources
    opened: set[UOp] = set()  # nodes that wait for their sources
    matchers = pm.matchers
    stack = [root]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        new = becomes.get(node)
        if new is not None:
            if new in done:
                done[node] = done[new]
                stack.pop()
            else:
                stack.append(new)
            continue
        src = node.src
        if src:
            changed = waiting = False
            for s in src:
                if s not in done:
                    waiting = True
                    break
                if done[s] is not s:
                    changed = True
            if waiting:
                if node in opened:
                    raise _cycle(node)
                opened.add(node)
                stack.extend([s for s in src[::-1] if s not in done])
                continue
            if changed:
                new = UOp(node.op, node.dtype, tuple([done[s] for s in src]), node.arg)
        if new is None:
            match = matchers.get(node.op, _NO_ROW)
            if match is _NO_ROW:
                match = pm.prepare(node.op)
            if match is None or (new := match(node)) is None:
                done[node] = node
                stack.pop()
                continue
        if new in becomes and new not in done:
            raise _cycle(new)
        becomes[node] = new
    return done[root]


def _cycle(node: UOp) -> InternalError:
    return InternalError(f"graph_rewrite: {node!r} becomes something that leads back to it; two rows loop")
