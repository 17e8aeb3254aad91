"""Records which line of a program made which nodes, so that a kernel can be traced back to lines.

    with recorded_origins():
        result = profile(TinyJit(lambda: model(x).cross_entropy(y)))    # line 12
    result.launches[0].places                                           # (Place("train.py", 12, False),)

While lines are recorded, every Program is made anew. Otherwise nothing is recorded, and nothing costs time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from polygrad import gradient
from polygrad.errors import CaptureError
from polygrad.helpers import caller
from polygrad.monitor import observe, stop_observing
from polygrad.tensor.core.base import TensorBase
from polygrad.uop.node import UOp
from polygrad.uop.origins import Origins, Place, watch

# The file and line of the program that runs now; None where that is not known.
Locate = Callable[[], "tuple[str, int] | None"]


class _Depth(threading.local):
    """State of a thread. `is_inside`: whether it executes a method of Tensor."""

    is_inside = False


@contextlib.contextmanager
def recorded_origins(locate: Locate = caller) -> Iterator[None]:
    """`with recorded_origins():` the lines that make nodes are recorded, and the launches of the Programs
    that are made have `places`. A gradient has the line of what it is the gradient of.

    `locate` is asked at each operation; by default it finds the innermost line that is not polygrad's own.
    Raises CaptureError inside of another such block.
    """
    if watch.origins is not None:
        raise CaptureError("recorded_origins: expected no such block inside of another")
    origins: Origins[Place | None] = Origins()
    depth = _Depth()

    def call(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if depth.is_inside or function.__name__ == "__init__":  # data, which no operation made
            return function(*args, **kwargs)
        depth.is_inside = True
        try:
            for x in tensors_in((args, kwargs)):
                origins.note(x.uop, None)
            out = function(*args, **kwargs)
            made = tensors_in((args[:1], out))
            place = locate() if made else None
            for x in made:
                origins.note(x.uop, None if place is None else Place(*place))
            return out
        finally:
            depth.is_inside = False

    def look_at_gradient(node: UOp, source: UOp, g: UOp) -> None:
        place = origins.of(node)
        if place is not None:
            origins.note(g, place._replace(gradient=True))

    watch.origins = origins
    observe(call)
    gradient.watch.observers += (look_at_gradient,)
    try:
        yield
    finally:
        watch.origins = None
        stop_observing(call)
        gradient.watch.observers = tuple(x for x in gradient.watch.observers if x is not look_at_gradient)


def tensors_in(x: Any) -> list[Any]:
    """The Tensors among arguments or results."""
    if isinstance(x, TensorBase):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [t for part in x for t in tensors_in(part)] if isinstance(x, (list, tuple)) else []
