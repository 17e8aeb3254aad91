"""Pictures, as SVG text: curves of a training run, histograms, heat maps, pixels, the graph of a computation,
the timeline of a step.

    pathlib.Path("graph.svg").write_text(pictures.graph(t))
    pathlib.Path("step.svg").write_text(pictures.timeline(profile(lambda: step.run(x, y))))

Nothing is needed to make them but this package, and nothing to look at them but a browser. Names load when
they are first used: a history draws curves without what graphs and profiles need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polygrad.engine.profile import profile
    from polygrad.engine.trace import trace
    from polygrad.pictures.curves import chart
    from polygrad.pictures.launches import timeline
    from polygrad.pictures.nodes import graph
    from polygrad.pictures.plots import heat_map, histogram, image

__all__ = ["chart", "graph", "heat_map", "histogram", "image", "profile", "timeline", "trace"]

_LATE = {
    "chart": "polygrad.pictures.curves",
    "graph": "polygrad.pictures.nodes",
    "heat_map": "polygrad.pictures.plots",
    "histogram": "polygrad.pictures.plots",
    "image": "polygrad.pictures.plots",
    "profile": "polygrad.engine.profile",
    "timeline": "polygrad.pictures.launches",
    "trace": "polygrad.engine.trace",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'polygrad.pictures' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATE[name]), name)
