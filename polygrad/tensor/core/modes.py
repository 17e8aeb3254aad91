"""The modes of a thread: training mode, and whether gradients are recorded.

Both belong to a thread, as torch's grad mode does: `with Tensor.train():` has no effect on other threads.
`Tensor.training = ...` sets the mode of every thread outside of a `train` block.
"""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Generator
from typing import Any

from polygrad.missing import missing


class _Modes(threading.local):
    """State of a thread. `training`: the mode within a `train` block. `unread_gradients`: Tensors with
    `requires_grad=None` that `backward` gave a gradient, see `drop_unread_gradients`."""

    grad_enabled = True
    training: bool | None = None

    def __init__(self) -> None:
        self.unread_gradients: list[weakref.ref[Any]] = []


modes = _Modes()


class GradMode:
    """`with GradMode(False):` results of this thread are cut from gradients. `@GradMode(False)` has this
    effect during each call of a function, and whenever a generator resumes.

    It is reusable and reentrant.
    """

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(modes.grad_enabled)
        modes.grad_enabled = self.enabled

    def __exit__(self, *error: object) -> None:
        modes.grad_enabled = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(function):
            return functools.wraps(function)(lambda *args, **kwargs: self._steps(function(*args, **kwargs)))
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                return await _Awaited(self._steps(function(*args, **kwargs).__await__()))

            return coroutine

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            before, modes.grad_enabled = modes.grad_enabled, self.enabled
            try:  # no `with`: a signal's handler may raise where __exit__ begins
                return function(*args, **kwargs)
            finally:
                modes.grad_enabled = before

        return call

    def _steps(self, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """`inner`, with each step executed in this mode."""
        resume: Callable[[], Any] = functools.partial(next, inner)
        while True:
            try:
                with GradMode(self.enabled):
                    out = resume()
            except StopIteration as stop:
                return stop.value
            try:
                sent_value = yield out
            except GeneratorExit:
                with GradMode(self.enabled):
                    inner.close()
                raise
            except BaseException as error:
                resume = functools.partial(inner.throw, error)
            else:
                resume = functools.partial(inner.send, sent_value)


class _Awaited:
    """An awaitable that runs `steps`."""

    def __init__(self, steps: Generator[Any, Any, Any]) -> None:
        self._steps = steps

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._steps


class TensorType(type):
    """The class of `Tensor`."""

    _training = False  # of threads outside of a `train` block

    def __getattr__(cls, name: str) -> Any:
        raise AttributeError(missing("Tensor", f"class {cls.__name__!r}", name), name=name, obj=cls)

    @property
    def training(cls) -> bool:
        """Whether dropout is active, BatchNorm updates its statistics and optimizers may step."""
        return TensorType._training if modes.training is None else modes.training

    @training.setter
    def training(cls, mode: bool) -> None:
        if modes.training is None:
            TensorType._training = mode
        else:
            modes.training = mode
