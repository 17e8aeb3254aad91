"""`TinyJit`: a function's work on the device, captured once and replayed. The semantics are tinygrad's."""

from __future__ import annotations

import copy
import functools
import os
import sys
import weakref
from collections.abc import Callable, Collection
from typing import Any

from polygrad.capture.arguments import argument_names, result_names, take_apart, tensors_in
from polygrad.capture.capture import capture
from polygrad.capture.replay import CapturedStep
from polygrad.capture.save import save_step
from polygrad.engine.recording import watch
from polygrad.errors import CaptureError
from polygrad.monitor import computing, exclusive, synchronized
from polygrad.nn.state import get_state_dict
from polygrad.runtime.program import Program
from polygrad.tensor.core.aliasing import Storage, storage_of, watch_writes


class TinyJit:
    """A decorator: the first call runs the function, the second captures it, later ones replay what it did.

        @TinyJit
        def step(x):
            return (x * w).sum()

    A replay runs no Python of the function: one Program does all that the captured call did on the device, on
    the new arguments. So the arguments' shapes, dtypes and devices must stay (ShapeError, DTypeError,
    DeviceError), and all else that is passed must stay equal (CaptureError), but for values of bound
    `Variable`s, passed as such or in shapes.

    - Results are the same Tensors on every call: the next call overwrites them (`clone` what must last). They
      carry no gradient. Where their shape has Variables it follows the values of the call, and so do views
      of them.
    - What the values of Variables decide (is an index in range, where does a slice end) is decided when the
      function is captured: a call whose values would decide otherwise raises CaptureError.
    - Tensors that the function uses or assigns to, such as weights, keep their memory; what is assigned to
      them between calls is seen. What is computed from them between calls keeps its value, lazy or not.
    - Random numbers go on as if the function had been called.
    - Values that the function makes of Python data are those of the captured call. Reading values (`item`,
      `numpy`, ...), copies between devices and `manual_seed` in it raise CaptureError; nothing stays captured
      then, and the next call tries again.

    `prune=True` (`@TinyJit(prune=True)`): work that depends on no argument, on no Variable and on nothing
    that the function writes is done once, before the first replay, and left out of replays: weights that are
    unpacked, masks, tables of positions. It is done again when what it reads was written to since.

        @TinyJit(prune=True)
        def forward(x):
            return x @ (weights.cast("float32") * scale)  # multiplied once

    Called inside another captured function it is part of that. On methods each object captures for itself.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_calls",
        "_function",
        "_names",
        "_of",
        "_prune",
        "_rest",
        "_step",
        "_written",
        "_written_arguments",
    )

    def __new__(cls, function: Callable[..., Any] | None = None, *, prune: bool = False) -> Any:
        if function is None:
            return functools.partial(cls, prune=prune)
        return super().__new__(cls)

    def __init__(self, function: Callable[..., Any], *, prune: bool = False) -> None:
        self._function, self._prune = function, prune
        self._of: dict[int, tuple[weakref.ref[Any], TinyJit]] = {}
        functools.update_wrapper(self, function)
        self.reset()

    def __deepcopy__(self, memo: dict[int, Any]) -> TinyJit:
        """Of the same function, or of a copy of a bound method or another object; it captures for itself."""
        return TinyJit(copy.deepcopy(self._function, memo), prune=self._prune)

    def __copy__(self) -> TinyJit:
        return TinyJit(self._function, prune=self._prune)

    def __reduce__(self) -> Any:
        """The function, by its name; what was captured is captured anew where it is read."""
        found: Any = sys.modules.get(getattr(self._function, "__module__", ""))
        for part in getattr(self._function, "__qualname__", "").split("."):
            found = getattr(found, part, None)
        if found is self:  # it decorates that function, whose name is now its own
            return self._function.__qualname__
        return functools.partial(TinyJit, prune=self._prune), (self._function,)

    def reset(self) -> None:
        """Forget what was captured: the next call runs the function, the one after it captures anew."""
        self._calls = 0
        self._step: CapturedStep | None = None
        self._rest: list[Any] = []
        self._names: list[str] = []  # of the Tensors among the arguments
        self._written: Collection[Storage] = ()  # by the first call
        self._written_arguments: list[bool] = []  # which of its arguments it wrote to

    @property
    def captured(self) -> bool:
        """Whether the next call is a replay."""
        return self._step is not None

    @property
    def program(self) -> Program | None:
        """The captured Program, once there is one. Raises CaptureError where it has one on each of several
        devices: see `programs`."""
        return self._step.captured.program if self._step is not None else None

    @property
    def programs(self) -> list[Program]:
        """What a replay runs, once it is captured: one Program, or with several devices some for each."""
        return self._step.captured.programs if self._step is not None else []

    def save(self, path: str | os.PathLike[str], model: Any = None) -> None:
        """Write what was captured to the file `path`, to be run without the function, or without Python.

        Inputs have the names of the function's parameters (`x`; `batch.image` in a dict), outputs the keys of
        a dict that it returns, or `output0` and so on. An argument that it writes to becomes state that
        stays in the exported model. `model`: an object whose Tensors have names (`nn.state.get_state_dict`)
        for those that the function uses; the others are `param0`, `state0` and so on.

            step.save("model.pgrd", model)
            polygrad.export.load("model.pgrd").run(x=x)

        Raises CaptureError before the second call, which captures; ArgumentError for what a file cannot say:
        results that are views, sizes computed from Variables.
        """
        if self._step is None:
            raise CaptureError("save: expected a captured function, got none: call it twice before")
        values = {} if model is None else get_state_dict(model)
        save_step(self._step, path, self._names, result_names(self._step.result), values)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self._function, args, kwargs)

    @computing
    def _call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if watch.recording is not None:
            return function(*args, **kwargs)
        if self._calls == 0:
            given_first = _tensors(args, kwargs)
            with exclusive(), watch_writes() as self._written:
                result = function(*args, **kwargs)
            self._written_arguments = [t._storage in self._written for t in given_first]
            tensors = tensors_in(result)
            if tensors:
                tensors[0].realize(*tensors[1:])
            self._calls = 1
            return result
        given = take_apart(args, kwargs)
        step = self._step
        if step is None:
            names = [f"Tensor argument {i}" for i in range(len(given.tensors))]
            call = functools.partial(function, *args, **kwargs)
            pairs = zip(_tensors(args, kwargs), self._written_arguments, strict=False)
            written = {*self._written, *(storage_of(t) for t, is_written in pairs if is_written)}
            step = capture(call, given.tensors, names, written=written, prune=self._prune)
            self._step, self._rest = step, given.rest
            self._names = argument_names(function, args, kwargs)
        elif given.rest != self._rest:
            raise CaptureError(
                f"captured function: expected the arguments that are no Tensors to stay {self._rest}, got "
                f"{given.rest}: pass Tensors or bound Variables, or call reset()"
            )
        return step.run(given.tensors, given.variables)

    @synchronized
    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        if owner is None:
            return self
        key = id(owner)
        found = self._of.get(key)
        if found is None:
            forget = functools.partial(_forget, self._of, key)
            found = self._of[key] = (weakref.ref(owner, forget), TinyJit(self._function, prune=self._prune))
        return _Method(found[1], owner)


def _tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The Tensors among a call's arguments, each once, in the order of `take_apart`."""
    return tensors_in((args, [kwargs[name] for name in sorted(kwargs)]))


def _forget(table: dict[int, Any], key: int, _: Any) -> None:
    table.pop(key, None)


class _Method:
    """A captured function of one object, which is its first argument."""

    __slots__ = ("_jit", "_owner")

    def __init__(self, jit: TinyJit, owner: Any) -> None:
        self._jit, self._owner = jit, owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        jit = self._jit
        return jit._call(functools.partial(jit._function, self._owner), args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jit, name)
