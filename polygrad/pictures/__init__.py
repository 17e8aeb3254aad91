"""Pictures, as SVG text: curves of a training run, the graph of a computation, the timeline of a step.

    pathlib.Path("graph.svg").write_text(pictures.graph(t))
    pathlib.Path("step.svg").write_text(pictures.timeline(profile(lambda: step.run(x, y))))

Nothing is needed to make them but this package, and nothing to look at them but a browser.
"""

from polygrad.engine.profile import profile
from polygrad.pictures.chart import chart
from polygrad.pictures.graph import graph
from polygrad.pictures.timeline import timeline

__all__ = ["chart", "graph", "profile", "timeline"]
