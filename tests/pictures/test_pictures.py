"""Pictures are well-formed SVG that shows what it is given: every point, node, edge and launch."""

from __future__ import annotations

import base64
import math
import re
import xml.etree.ElementTree as ElementTree
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from polygrad import Tensor, TinyJit
from polygrad.engine.report import count_of, time_of
from polygrad.engine.trace import EXCHANGE, PROGRAM, Span, Trace
from polygrad.errors import ArgumentError
from polygrad.pictures import chart, graph, heat_map, histogram, image, profile, timeline
from polygrad.pictures.curves import round_ticks
from polygrad.uop.ops import Ops
from polygrad.uop.parser import parse

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def paths(picture: str) -> list[list[tuple[float, float]]]:
    """The points of every line of a chart."""
    found = [e.get("d", "") for e in ElementTree.fromstring(picture).iter(f"{SVG}path")]
    return [[(float(x), float(y)) for x, y in (p.split(",") for p in d[1:].split("L"))] for d in found]


def test_a_chart_has_a_curve_for_each_series_with_its_name() -> None:
    picture = chart({"loss": [3.0, 1.0, 2.0], "a < b": [0.0, 1.0]}, title="a & b")
    assert {"loss", "a < b", "a & b"} <= set(texts(picture))
    loss, other = paths(picture)
    assert [len(loss), len(other)] == [3, 2]
    xs, ys = zip(*loss, strict=True)
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)
    assert ys[0] < ys[2] < ys[1]  # up is less in a picture
    assert ys[1] - ys[0] == pytest.approx(2 * (ys[1] - ys[2]), abs=0.2)


def test_a_logarithmic_scale_has_equal_steps_for_equal_ratios() -> None:
    (points,) = paths(chart({"loss": [100.0, 10.0, 1.0]}, log=True))
    ys = [y for _, y in points]
    assert ys[1] - ys[0] == pytest.approx(ys[2] - ys[1], abs=0.2)


def test_what_is_not_finite_leaves_a_gap() -> None:
    picture = chart({"loss": [1.0, 2.0, math.nan, 3.0, 4.0, math.inf, 5.0]})
    assert [len(p) for p in paths(picture)] == [2, 2]
    assert len(list(ElementTree.fromstring(picture).iter(f"{SVG}circle"))) == 1


def test_a_long_curve_is_of_means() -> None:
    (points,) = paths(chart({"x": [float(i % 2) for i in range(6000)]}))
    assert len(points) == 600
    assert len({y for _, y in points}) == 1


@pytest.mark.parametrize(
    ("series", "log"), [({}, False), ({"x": []}, False), ({"x": [math.nan]}, False), ({"x": [0.0]}, True)]
)
def test_a_chart_of_nothing_is_refused(series: dict[str, list[float]], log: bool) -> None:
    with pytest.raises(ArgumentError, match="chart: expected"):
        chart(series, log=log)


@pytest.mark.parametrize(
    ("low", "high", "want"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.0, 99.0, [0, 20, 40, 60, 80, 100]),
        (-0.3, 0.7, [-0.4, -0.2, 0, 0.2, 0.4, 0.6, 0.8]),
        (5, 5, [5, 6]),
        (0, 0, [0, 0.2]),
    ],
)
def test_ticks_are_round_and_around_all(low: float, high: float, want: list[float]) -> None:
    assert round_ticks(low, high) == pytest.approx(want)


def test_a_graph_has_a_box_for_each_node_and_nothing_is_computed() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    y = (x * 3.0).exp2().sum()
    picture = graph(y)
    words = texts(picture)
    assert {"BUFFER", "MUL 3", "EXP2"} <= set(words)
    assert any(w.startswith("REDUCE_AXIS ADD") for w in words)
    nodes = [n for n in y.uop.toposort() if n.op.name != "CONST"]
    root = ElementTree.fromstring(picture)
    assert len(list(root.iter(f"{SVG}g"))) == len(nodes)
    assert not y.uop.op.name == "BUFFER"
    assert graph(y.uop) == picture


def test_no_boxes_of_a_graph_overlap_and_all_are_inside() -> None:
    x = Tensor.rand(4, 4)
    root = ElementTree.fromstring(graph((x.softmax(1) @ x).layernorm()))
    size = [float(root.get(k, "0")) for k in ("width", "height")]
    boxes = [[float(r.get(k, "0")) for k in ("x", "y", "width", "height")] for g in root.iter(f"{SVG}g")
             for r in g.iter(f"{SVG}rect")]  # fmt: skip
    assert len(boxes) > 20
    for i, (x1, y1, w1, h1) in enumerate(boxes):
        assert x1 >= 0 and y1 >= 0 and x1 + w1 <= size[0] and y1 + h1 <= size[1]
        for x2, y2, w2, h2 in boxes[:i]:
            assert x1 + w1 <= x2 or x2 + w2 <= x1 or y1 + h1 <= y2 or y2 + h2 <= y1


@pytest.mark.parametrize("stage", ["simplify", "optimize", "lower-stages", "linearize"])
def test_a_kernel_is_drawn_at_every_stage(stage: str) -> None:
    file = sorted((Path(__file__).parent.parent / "filetests" / stage).glob("*.ir"))[0]
    for kernel in file.read_text(encoding="utf-8").split("; becomes"):
        lines = [line for line in kernel.splitlines() if line and not line.startswith(";")]
        if lines:
            nodes = parse("\n".join(lines))
            drawn = texts(graph(nodes[-1]))
            assert all(any(t.startswith(n.op.name) for t in drawn) for n in nodes if n.op is not Ops.CONST)


def test_a_graph_of_too_many_nodes_is_refused() -> None:
    x = Tensor([1.0])
    for i in range(450):
        x = (x + float(i)).sqrt()
    with pytest.raises(ArgumentError, match="at most 400 nodes"):
        graph(x)


def test_a_timeline_has_a_bar_for_each_launch() -> None:
    x = Tensor.rand(32, 32).realize()
    found = profile(TinyJit(lambda: (x @ x).softmax(1).sum()), seconds=0.01)
    picture = timeline(found)
    bars = [r for r in ElementTree.fromstring(picture).iter(f"{SVG}rect") if r.get("fill-opacity")]
    assert len(bars) == len(found.launches) > 1
    assert texts(picture)[0].startswith(f"{len(found.launches)} launches")
    starts = [float(b.get("x", "0")) for b in bars]
    assert starts == sorted(starts)


def test_a_timeline_of_a_trace_has_a_bar_for_each_span_where_it_is() -> None:
    spans = [Span(PROGRAM, "a", 0.0, 0.5), Span(EXCHANGE, "b < c", 0.5, 1.0), Span(PROGRAM, "d", 0.5, 0.75)]
    picture = timeline(Trace(tuple(spans), 1.0))
    bars = [r for r in ElementTree.fromstring(picture).iter(f"{SVG}rect") if r.get("fill-opacity")]
    assert [bar[0].text for bar in bars] == [
        "a: 500 ms from 0 µs on", "d: 250 ms from 500 ms on", "b < c: 500 ms from 500 ms on"
    ]  # fmt: skip
    (x1, w1, y1), (x2, w2, y2), (x3, w3, y3) = (
        [float(bar.get(k, "0")) for k in ("x", "width", "y")] for bar in bars
    )
    assert x1 + w1 == pytest.approx(x2) and x2 == x3 and w3 == pytest.approx(2 * w2) == pytest.approx(w1)
    assert y1 == y2 < y3
    assert texts(picture)[0] == "2 Programs 750 ms, 1 exchange 500 ms, 250 ms of it meanwhile, 1.00 s in all"


@pytest.mark.parametrize(
    ("seconds", "want"), [(0.0, "0 µs"), (1.25e-5, "12.5 µs"), (0.0025, "2.5 ms"), (3.0, "3.00 s")]
)
def test_times_have_a_unit_that_fits(seconds: float, want: str) -> None:
    assert time_of(seconds) == want


@pytest.mark.parametrize(("count", "want"), [(0, "0 "), (999, "999 "), (12_345, "12.3 k"), (5e12, "5 T")])
def test_counts_have_a_prefix_that_fits(count: float, want: str) -> None:
    assert count_of(count) == want


# --- histograms, heat maps, pixels


def pixels(picture: str) -> list[Any]:
    """The pixels of every image in a picture, as PIL reads them."""
    found = [e.get("href", "") for e in ElementTree.fromstring(picture).iter(f"{SVG}image")]
    return [np.asarray(Image.open(BytesIO(base64.b64decode(f.partition(",")[2])))) for f in found]


def test_a_histogram_counts_as_numpy_does() -> None:
    values = np.random.default_rng(0).normal(size=500).astype(np.float32)
    picture = histogram(Tensor(values.reshape(5, 100)), bins=7, title="a < b")
    counts, edges = np.histogram(values, 7)
    labels = [e.text or "" for e in ElementTree.fromstring(picture).iter(f"{SVG}title")]
    found = [re.findall(r"[-\d.e]+", label) for label in labels]
    assert [int(n) for n, _, _ in found] == counts.tolist() and "a < b" in texts(picture)
    assert [float(left) for _, left, _ in found] == pytest.approx(edges[:-1], rel=1e-4)
    bars = [e for e in ElementTree.fromstring(picture).iter(f"{SVG}rect") if len(e)]
    heights = np.array([float(e.get("height", "")) for e in bars])
    assert heights / heights.max() == pytest.approx(counts / counts.max(), abs=1e-2)


def test_equal_numbers_and_infinite_ones_have_a_histogram() -> None:
    picture = histogram([2, 2.0, math.nan, math.inf], bins=3)
    assert [t.split()[0] for t in ElementTree.fromstring(picture).itertext() if "from" in t] == [
        "0",
        "2",
        "0",
    ]


def test_a_heat_map_has_the_colours_of_viridis() -> None:
    values = np.linspace(-2, 3, 12).reshape(3, 4)
    found, scale = pixels(heat_map(values))
    assert found.shape == (3, 4, 3) and scale.shape == (64, 1, 3)
    (middle,) = pixels(heat_map([[0.0, 0.5, 1.0]]))[0]
    assert np.abs(middle[1].astype(int) - (33, 145, 140)).max() < 8
    grey = found.reshape(-1, 3) @ (0.299, 0.587, 0.114)
    assert (np.diff(grey) > 0).all()  # also without colours
    assert found[0, 0].tolist() == [68, 1, 84] == scale[-1, 0].tolist()
    assert found[-1, -1].tolist() == [253, 231, 37] == scale[0, 0].tolist()
    assert {"-2", "3"} <= set(texts(heat_map(values)))
    assert pixels(heat_map([[0.0, math.nan]]))[0][0, 1].tolist() == [255, 255, 255]


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 1), (2, 3, 2), (2, 3, 3), (2, 3, 4)])
def test_pixels_are_those_that_were_given(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    wanted = values[..., 0] if shape[2:] == (1,) else values
    for given in (values, Tensor(values), (values / 255).tolist()):
        (found,) = pixels(image(given))
        assert np.array_equal(found, wanted)
    assert pixels(image([[-1.0, 2.0, math.nan]]))[0].tolist() == [[0, 255, 0]]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: histogram([math.nan]), "expected finite numbers and bins, got 0 and 30"),
        (lambda: histogram([1.0], bins=0), "got 1 and 0"),
        (lambda: heat_map([1.0, 2.0]), "heat_map: expected 2 axes with elements, got 1"),
        (lambda: heat_map([[1.0], [1.0, 2.0]]), "heat_map: expected rows of one length"),
        (lambda: heat_map([[math.inf]]), "heat_map: expected finite numbers, got none"),
        (lambda: image(Tensor.zeros(2, 2, 5)), "image: expected 1 to 4 channels, the last axis, got 5"),
        (lambda: image([]), "image: expected 2 axes with elements, got 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        draw()
