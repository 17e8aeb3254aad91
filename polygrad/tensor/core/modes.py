"""What a thread is inside of: training mode, and whether gradients are recorded.

Both belong to a thread, as torch's grad mode does: `with Tensor.train():` in one changes nothing in others.
What `Tensor.training = ...` sets is the mode of every thread that is inside of no `train`.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any


class _Modes(threading.local):
    """Of the thread that asks. `training`: inside of `train`, its mode. `unread_gradients`: Tensors that
    `backward` gave a gradient without being told to, see `drop_unread_gradients`."""

    grad_enabled = True
    training: bool | None = None

    def __init__(self) -> None:
        self.unread_gradients: list[weakref.ref[Any]] = []


modes = _Modes()


class TensorType(type):
    """The class of `Tensor`."""

    _training = False  # of threads that are inside of no `train`

    @property
    def training(cls) -> bool:
        """Whether dropout drops, BatchNorm measures and optimizers step."""
        return TensorType._training if modes.training is None else modes.training

    @training.setter
    def training(cls, mode: bool) -> None:
        if modes.training is None:
            TensorType._training = mode
        else:
            modes.training = mode
