"""The origins of nodes: which line of a program made which node, while somebody records it.

`watch.origins` is what is recorded; None: nothing is, and nothing is paid for. A pass that makes a node in
the place of another passes the origin on. Equal nodes are one node, whose origin is the first that was noted.
Locations are MLIR's idea; tinygrad has them as metadata.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
Node: TypeAlias = Any  # a UOp: node.py imports this module


class Place(NamedTuple):
    """A line of a program, or, with `gradient`, the gradient of what that line computes."""

    file: str
    line: int
    gradient: bool = False


class Origins(Generic[T]):
    """The origins of nodes."""

    def __init__(self) -> None:
        self._origins: dict[Node, T] = {}

    def note(self, root: Node, origin: T) -> bool:
        """Record `origin` for the node and all its ancestors without one; return whether there were any."""
        new = root.toposort(lambda n: n not in self._origins)
        before = len(self._origins)
        for node in new:
            self._origins.setdefault(node, origin)
        return len(self._origins) > before

    def of(self, node: Node) -> T | None:
        """The origin of a node; None if it was not recorded."""
        return self._origins.get(node)

    def pass_on(self, node: Node, successor: Node) -> None:
        """`successor` takes the place of `node`: it has the same origin, unless it has one already."""
        origin = self._origins.get(node)
        if origin is not None:
            self._origins.setdefault(successor, origin)

    def clear(self) -> None:
        """Forget all of them."""
        self._origins.clear()


class _Watch:
    """`origins`: the lines that made nodes, while they are recorded. None as the origin of a node: no line
    made it."""

    origins: Origins[Place | None] | None = None


watch = _Watch()
