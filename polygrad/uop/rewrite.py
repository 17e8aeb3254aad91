"""`graph_rewrite`: a table of patterns applied to a whole graph, to a fixed point.

Iterative and memoised: each distinct node is looked at once, and no node is rebuilt unless a source of it
changed. Knows nothing of what the patterns mean.
"""

from __future__ import annotations

import sys
from typing import Any

from polygrad.errors import InternalError
from polygrad.helpers import debug_level
from polygrad.uop.node import UOp
from polygrad.uop.pattern import PatternMatcher
from polygrad.uop.printer import render

_NO_ROW: Any = object()


def graph_rewrite(
    root: UOp, pm: PatternMatcher, ctx: Any = None, bottom_up: bool = False, name: str | None = None
) -> UOp:
    """`root` with the rows of `pm` applied wherever they match, until none does.

    By default a node's sources are finished before the node is matched. With `bottom_up` (tinygrad's word for
    starting at the root) a node is matched before its sources are looked at, and again when they changed: for
    rows that must see a node as it was written.
    `ctx` is handed to the rows that name it. A pass with a `name` is printed under DEBUG=4.
    Raises InternalError when a rewrite leads back to a node it came from.
    """
    out = _from_root(root, pm, ctx) if bottom_up else rewrite_into({}, root, pm, ctx)
    if name is not None and debug_level() >= 4:
        print(f"--- {name}\n{render(out)}", file=sys.stderr)
    return out


def rewrite_into(done: dict[UOp, UOp], root: UOp, pm: PatternMatcher, ctx: Any = None) -> UOp:
    """`graph_rewrite`, sources first, that knows what the nodes in `done` become and adds what it learns."""
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


def _from_root(root: UOp, pm: PatternMatcher, ctx: Any) -> UOp:
    done: dict[UOp, UOp] = {}
    becomes: dict[UOp, UOp] = {}
    opened: set[UOp] = set()  # nodes that no row matches and that wait for their sources
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
        if node not in opened:
            new = pm.rewrite(node, ctx)
        if new is None:
            waiting = [s for s in node.src[::-1] if s not in done]
            if waiting:
                if node in opened:
                    raise _cycle(node)
                opened.add(node)
                stack.extend(waiting)
                continue
            src = tuple([done[s] for s in node.src])
            if src == node.src:
                done[node] = node
                stack.pop()
                continue
            new = UOp(node.op, node.dtype, src, node.arg)
        if new in becomes and new not in done:
            raise _cycle(new)
        becomes[node] = new
    return done[root]


def _cycle(node: UOp) -> InternalError:
    return InternalError(f"graph_rewrite: {node!r} becomes something that leads back to it; two rows loop")
