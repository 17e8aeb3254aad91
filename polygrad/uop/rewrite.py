"""`graph_rewrite`: a table of patterns applied to a whole graph, to a fixed point.

Iterative and memoised: each distinct node is looked at once, and no node is rebuilt unless a source of it
changed. Knows nothing of what the patterns mean.
"""

from __future__ import annotations

from typing import Any

from polygrad.errors import InternalError
from polygrad.uop.node import UOp
from polygrad.uop.pattern import PatternMatcher

_NO_ROW: Any = object()


def graph_rewrite(root: UOp, pm: PatternMatcher, ctx: Any = None) -> UOp:
    """`root` with the rows of `pm` applied wherever they match, until none does.

    A node's sources are finished before the node is matched. `ctx` is handed to the rows that name it.
    Raises InternalError when a rewrite leads back to a node it came from.
    """
    return rewrite_into({}, root, pm, ctx)


def rewrite_into(done: dict[UOp, UOp], root: UOp, pm: PatternMatcher, ctx: Any = None) -> UOp:
    """`graph_rewrite` with a memo: `done` has what nodes become, and gets the new results."""
    becomes: dict[UOp, UOp] = {}  # what a node was rewritten to, or itself over its finished sources
    opened: set[UOp] = set()  # nodes that wait for their sources
    compiled = pm.compiled
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
            match = compiled.get(node.op, _NO_ROW)
            if match is _NO_ROW:
                match = pm.compile(node.op)
            if match is None or (new := match(node, ctx)) is None:
                done[node] = node
                stack.pop()
                continue
        if new in becomes and new not in done:
            raise _cycle(new)
        becomes[node] = new
    return done[root]


def _cycle(node: UOp) -> InternalError:
    return InternalError(f"graph_rewrite: {node!r} becomes something that leads back to it; two rows loop")
