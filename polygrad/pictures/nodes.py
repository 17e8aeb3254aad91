"""A graph of nodes in layers: sources above, what reads them below.

Layers by the longest path from a source, order in a layer by the mean place of neighbours (Sugiyama, Tagawa
and Toda, 1981), swept up and down. Constants are written into what reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from polygrad.errors import ArgumentError, InternalError
from polygrad.pictures.svg import CHARACTER, INK, LINE, MUTED, document, element, text, title
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_PADDING, _GAP, _LAYER, _MARGIN, _SWEEPS, _MOST_LETTERS = 8, 18, 30, 14, 8, 34
_EDGE = "#9aa3b2"
MOST_NODES = 400

_COLORS = {"memory": "#dbe9ff", "arithmetic": "#e2f4e6", "reduction": "#fde4d3", "movement": "#f1f2f5",
           "loop": "#efe2fb", "other": "#fff6d6"}  # fmt: skip
_MEMORY = {
    Ops.BUFFER,
    Ops.PARAM,
    Ops.DEFINE_REG,
    Ops.INDEX,
    Ops.LOAD,
    Ops.STORE,
    Ops.AFTER,
    Ops.ASSIGN,
    Ops.COPY,
}
_LOOPS = {Ops.RANGE, Ops.END, Ops.DEFINE_VAR}


class _HasGraph(Protocol):
    @property
    def uop(self) -> UOp: ...


def graph(of: UOp | _HasGraph) -> str:
    """The nodes that `of`, a Tensor or a node, is made of, as SVG text. Nothing is computed.

    Raises ArgumentError for more than 400 nodes: look at a part, or at one kernel.

    >>> from polygrad import Tensor
    >>> "SQRT" in graph(Tensor([4.0]).sqrt())
    True
    """
    root = of if isinstance(of, UOp) else of.uop
    nodes = [n for n in root.toposort() if n.op is not Ops.CONST or n is root]
    if len(nodes) > MOST_NODES:
        raise ArgumentError(
            f"graph: expected at most {MOST_NODES} nodes, got {len(nodes)}: draw a part of it"
        )
    drawing = _arrange(nodes)
    labels = {v: _label(n) for v, n in enumerate(nodes)}
    size = [
        max(map(len, labels[v])) * CHARACTER + 2 * _PADDING if v in labels else 0 for v in drawing.vertices
    ]
    width = max(sum(size[v] + _GAP for v in layer) - _GAP for layer in drawing.layers) + 2 * _MARGIN
    box_height = 2 * LINE + _PADDING
    place: dict[int, tuple[float, float]] = {}
    for depth, layer in enumerate(drawing.layers):
        x = (width - sum(size[v] + _GAP for v in layer) + _GAP) / 2
        for v in layer:
            place[v] = (x + size[v] / 2, _MARGIN + depth * (box_height + _LAYER))
            x += size[v] + _GAP
    lines = []
    for v, sources in enumerate(drawing.sources):
        x, y = place[v]
        lines += [_edge(place[s][0], place[s][1] + box_height, x, y) for s in sources]
        if v not in labels:  # a line on its way past a layer
            lines.append(element("line", x1=x, x2=x, y1=y, y2=y + box_height, stroke=_EDGE))
    boxes = [_box(n, *place[v], size[v], box_height, labels[v]) for v, n in enumerate(nodes)]
    height = len(drawing.layers) * (box_height + _LAYER) - _LAYER + 2 * _MARGIN
    return document(width, height, lines + boxes)


@dataclass(slots=True)
class _Drawing:
    """Vertices in layers: those up to the number of nodes are nodes, the others bends of long lines.

    `sources` and `readers` of each are in the layers next to its own.
    """

    layers: list[list[int]]
    sources: list[list[int]]
    readers: list[list[int]]

    @property
    def vertices(self) -> range:
        return range(len(self.sources))

    def add(self, layer: int) -> int:
        self.sources.append([])
        self.readers.append([])
        self.layers[layer].append(len(self.sources) - 1)
        return len(self.sources) - 1

    def join(self, source: int, reader: int) -> None:
        self.sources[reader].append(source)
        self.readers[source].append(reader)


def _arrange(nodes: list[UOp]) -> _Drawing:
    """Nodes, which come after their sources, in layers, each in the order that it is drawn in."""
    number = {n: v for v, n in enumerate(nodes)}
    sources = [[number[s] for s in dict.fromkeys(n.src) if s in number] for n in nodes]
    depth: list[int] = []
    first_reader: dict[int, int] = {}
    for of in sources:
        depth.append(1 + max((depth[s] for s in of), default=-1))
        for s in of:
            first_reader[s] = min(first_reader.get(s, depth[-1]), depth[-1])
    for v, of in enumerate(sources):
        if not of and v in first_reader:  # what has no source stands above its first reader
            depth[v] = first_reader[v] - 1
    drawing = _Drawing([[] for _ in range(max(depth) + 1)], [], [])
    for v in range(len(nodes)):
        drawing.add(depth[v])
    for v, of in enumerate(sources):
        for s in of:
            last = s
            for layer in range(depth[s] + 1, depth[v]):
                bend = drawing.add(layer)
                drawing.join(last, bend)
                last = bend
            drawing.join(last, v)
    _sweep(drawing)
    return drawing


def _sweep(drawing: _Drawing) -> None:
    """Order each layer by the mean place of what its vertices read, then of what reads them, and again."""
    place = {v: i / len(layer) for layer in drawing.layers for i, v in enumerate(layer)}
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbours = drawing.sources if down else drawing.readers
        for layer in drawing.layers if down else reversed(drawing.layers):
            mean = {v: place[v] for v in layer}
            mean |= {v: sum(map(place.__getitem__, of)) / len(of) for v in layer if (of := neighbours[v])}
            layer.sort(key=mean.__getitem__)
            place.update((v, i / len(layer)) for i, v in enumerate(layer))


def _label(node: UOp) -> tuple[str, str]:
    """The two lines of a node's box."""
    constants = ", ".join(f"{s.arg:g}" if isinstance(s.arg, float) else str(s.arg)
                          for s in node.src if s.op is Ops.CONST)  # fmt: skip
    head = node.op.name + (f" {constants}" if constants else "")
    if node.op is Ops.CONST:
        head = f"CONST {node.arg}"
    elif node.op in (Ops.REDUCE_AXIS, Ops.PERMUTE) and node.arg is not None:
        head = f"{head} {_said(node.arg)}"
    return _short(head), _short(f"{node.dtype} {_shape(node)}".strip())


def _said(arg: object) -> str:
    parts = arg if isinstance(arg, tuple) else (arg,)
    return " ".join(p.name if isinstance(p, Ops) else str(p) for p in parts)


def _shape(node: UOp) -> str:
    try:
        shape = node.shape
    except InternalError:  # the nodes of kernels have none
        return ""
    return str(tuple(shape)) if shape else ""


def _short(words: str) -> str:
    return words if len(words) <= _MOST_LETTERS else words[: _MOST_LETTERS - 1] + "…"


def _kind(node: UOp) -> str:
    if node.op in _MEMORY:
        return "memory"
    if node.op in _LOOPS:
        return "loop"
    if node.op in (Ops.REDUCE, Ops.REDUCE_AXIS):
        return "reduction"
    if node.op in GroupOp.Movement:
        return "movement"
    return "arithmetic" if node.op in GroupOp.Elementwise else "other"


def _box(n: UOp, x: float, y: float, width: float, height: float, label: tuple[str, str]) -> str:
    rect = element("rect", x=x - width / 2, y=y, width=width, height=height, rx=4, fill=_COLORS[_kind(n)],
                   stroke=_EDGE)  # fmt: skip
    first = text(x, y + LINE, label[0], text_anchor="middle", fill=INK, font_weight="bold")
    second = text(x, y + 2 * LINE, label[1], text_anchor="middle", fill=MUTED)
    return element("g", title(f"{n.op.name} {n.dtype}") + rect + first + second)


def _edge(x1: float, y1: float, x2: float, y2: float) -> str:
    middle = (y1 + y2) / 2
    path = f"M{x1:.1f},{y1:.1f}C{x1:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f}"
    return element("path", d=path, fill="none", stroke=_EDGE)
