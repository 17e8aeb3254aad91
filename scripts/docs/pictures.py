"""The pictures of the guides, made anew with each build: graphs, and the timeline of a training step."""

from __future__ import annotations

from polygrad import Tensor, compile_step, nn
from polygrad.nn.data import History
from polygrad.pictures import graph, profile, timeline


def drawn() -> dict[str, str]:
    """SVG text by name."""
    Tensor.manual_seed(0)
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    model = [nn.Linear(64, 128), Tensor.relu, nn.Linear(128, 10)]
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.003)
    images, labels = Tensor.rand(64, 64), Tensor.randint(64, low=0, high=10)
    step = compile_step(
        lambda model, x, y: x.sequential(model).cross_entropy(y), model, optimizer, images, labels
    )
    history = History()
    for _ in range(120):
        history.add(loss=step.run(images, labels))
    found = profile(lambda: step.run(images, labels), seconds=0.1)
    return {
        "softmax": graph(x.softmax(1)),
        "step": timeline(found),
        "loss": history.svg(title="Loss"),
    }
