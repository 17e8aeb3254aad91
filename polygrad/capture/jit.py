"""`TinyJit`: a function's work on the device, captured once and replayed. The semantics are tinygrad's."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import sys
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from polygrad.capture.arguments import Parameters, result_names, split_arguments, tensors_in
from polygrad.capture.capture import capture, tensors_with_writes
from polygrad.capture.gradients import LeftGradients
from polygrad.capture.guards import GONE, Guards, modes_now
from polygrad.capture.replay import CapturedStep
from polygrad.capture.save import save_step
from polygrad.engine.recording import watch
from polygrad.errors import CaptureError
from polygrad.monitor import computing, exclusive, synchronized
from polygrad.nn.state import get_state_dict
from polygrad.runtime.program import Program
from polygrad.tensor.core.aliasing import Storage, realize_tensors, storage_of, watch_writes

_FEW_REPLAYS = 8  # after fewer, a capture was not worth it
_MOST_CHANGES = 4  # so many captures in a row that were not worth it are an error


@dataclass(slots=True)
class _Captured:
    """What is captured for one set of modes, or is about to be."""

    has_run: bool = False
    step: CapturedStep | None = None
    guards: Guards | None = None
    gradients: LeftGradients | None = None  # where the function reads or leaves any
    is_same: Callable[[], bool] = bool  # whether all that the function reads is what it was, and so are modes
    rest: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of the Tensors among the arguments
    written: Collection[Storage] = ()  # by the first call
    written_arguments: list[bool] = field(default_factory=list)  # which of its arguments it wrote to
    replays: int = 0


class TinyJit:
    """A decorator: the first call runs the function, the second captures it, later ones replay what it did.

        @TinyJit
        def step(x):
            return (x * w).sum()

    A replay runs no Python of the function: one Program does all that the captured call did on the device, on
    the new arguments. So the arguments' shapes, dtypes and devices must stay (ShapeError, DTypeError,
    DeviceError), and all else that is passed must stay equal (CaptureError), but for values of bound
    `Variable`s, passed as such or in shapes. `f(x, 2)`, `f(x, k=2)` and `f(x)` with a default of 2 are the
    same call.

    What the function reads otherwise is compared at each call: numbers, text, flags, Tensors and objects in
    closure variables, globals, attributes (`self.p`, `config.layers[0].p`) and items (`config["p"]`), also
    in methods and functions that it calls, as far as the code names them. Where one is another the function
    is captured anew; where that goes on, every few calls, CaptureError says which. It also says which one
    the function itself changes when it is called, as a counter: a replay would not. Modes (training,
    `no_grad`, default dtypes, `Device.DEFAULT`) have a capture each.

    - Results are the same Tensors on every call: the next call overwrites them (`clone` what must last). They
      carry no gradient. An argument that is returned is the Tensor that was passed, a view of one a copy.
      Where their shape has Variables it follows the values of the call, and so do views of them.
    - What the values of Variables decide (is an index in range, where does a slice end) is decided when the
      function is captured: a call whose values would decide otherwise raises CaptureError.
    - Tensors that the function uses or assigns to, such as weights, keep their memory; what is assigned to
      them between calls is seen. What is computed from them between calls keeps its value, lazy or not.
    - `backward` adds to the gradients that leaves have, and a replay leaves them those that the call does.
      Where they have one in some calls and none in others (accumulation), there is a capture of each.
    - Random numbers go on as if the function had been called.
    - What no name in the code leads to is that of the captured call: random numbers of Python, the time,
      files, elements of arrays. Reading values (`item`,
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
        "_captures",
        "_changes",
        "_current",
        "_function",
        "_of",
        "_parameters",
        "_prune",
    )

    def __new__(cls, function: Callable[..., Any] | None = None, *, prune: bool = False) -> Any:
        if function is None:
            return functools.partial(cls, prune=prune)
        return super().__new__(cls)

    def __init__(self, function: Callable[..., Any], *, prune: bool = False) -> None:
        self._function, self._prune = function, prune
        self._of: dict[int, tuple[weakref.ref[Any], TinyJit]] = {}
        self._parameters: Parameters | None = None
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
        self._captures: dict[tuple[Any, ...], list[_Captured]] = {}  # by modes; the newest last
        self._current = _Captured()  # of the last call
        self._changes = 0  # captures in a row that a change made useless soon

    @property
    def captured(self) -> bool:
        """Whether the next call is a replay."""
        return self._current.step is not None

    @property
    def program(self) -> Program | None:
        """The captured Program, once there is one. Raises CaptureError where it has one on each of several
        devices: see `programs`."""
        step = self._current.step
        return step.captured.program if step is not None else None

    @property
    def programs(self) -> list[Program]:
        """What a replay runs, once it is captured: one Program, or with several devices some for each."""
        step = self._current.step
        return step.captured.programs if step is not None else []

    def save(self, path: str | os.PathLike[str], model: Any = None) -> None:
        """Write what was captured to the file `path`, to be run without the function, or without Python.

        Inputs have the names of the function's parameters (`x`; `batch.image` in a dict), outputs the keys of
        a dict that it returns, or `output0` and so on. An argument that it writes to becomes state that
        stays in the exported model. `model`: an object whose Tensors have names (`nn.state.get_state_dict`)
        for those that the function uses; the others are `param0`, `state0` and so on.

            step.save("model.pgrd", model)
            polygrad.export.load("model.pgrd").run(x=x)

        Raises CaptureError before the second call, which captures; ArgumentError for what a file cannot say:
        results that are arguments or views, sizes computed from Variables.
        """
        captured = self._current
        if captured.step is None:
            raise CaptureError("save: the function is not captured yet: call it twice before")
        values = {} if model is None else get_state_dict(model)
        save_step(captured.step, path, captured.names, result_names(captured.step.result), values)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self._function, args, kwargs)

    @computing
    def _call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if watch.recording is not None:
            return function(*args, **kwargs)
        if self._parameters is None:
            self._parameters = Parameters(function)
        current = self._current
        try:
            is_same = current.is_same()
        except GONE:
            is_same = False
        if not is_same:
            current = self._current = self._found_or_anew()
        is_bound = not kwargs and len(args) == self._parameters.count
        values = args if is_bound else tuple(self._parameters.named(args, kwargs).values())
        if not current.has_run:
            return self._first(current, function, args, kwargs, values)
        given = split_arguments(values)
        step = current.step
        if step is None:
            step = self._capture(current, function, args, kwargs, given.tensors)
            current.rest = given.rest
        elif given.rest != current.rest:
            raise CaptureError(
                f"captured function: expected the arguments that are no Tensors to stay {current.rest}, got "
                f"{given.rest}: pass Tensors or bound Variables, or call reset()"
            )
        current.replays += 1
        result = step.run(given.tensors, given.variables)
        if current.gradients is not None:
            current.gradients.leave()
        return result

    def _first(
        self,
        current: _Captured,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        values: tuple[Any, ...],
    ) -> Any:
        """Run the function, and note what it writes to: the writes are carried out, as a replay does."""
        given = tensors_in(values)
        with exclusive(), watch_writes() as current.written:
            result = function(*args, **kwargs)
        current.written_arguments = [t._storage in current.written for t in given]
        writes = [t for t in tensors_with_writes() if storage_of(t) in current.written]
        realize_tensors([*tensors_in(result), *writes])
        current.has_run = True
        return result

    def _capture(
        self,
        current: _Captured,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        tensors: list[Any],
    ) -> CapturedStep:
        assert self._parameters is not None
        named = self._parameters.named(args, kwargs)
        guards = Guards([(function, named)])

        def call() -> Any:
            result = function(*args, **kwargs)
            guards.check_unchanged("captured function")
            return result

        pairs = zip(tensors_in(list(named.values())), current.written_arguments, strict=False)
        written = {*current.written, *(storage_of(t) for t, is_written in pairs if is_written)}
        names = [f"Tensor argument {i}" for i in range(len(tensors))]
        gradients = LeftGradients()
        step = capture(call, tensors, names, written=written, prune=self._prune, gradients=gradients)
        current.step, current.guards, current.gradients = step, guards, gradients if gradients else None
        current.is_same = self._check_of(current)
        current.names = self._parameters.names(args, kwargs)
        return step

    @staticmethod
    def _check_of(current: _Captured) -> Callable[[], bool]:
        """Whether all that the function reads is what it was."""
        assert current.guards is not None
        is_same, gradients = current.guards.is_same, current.gradients
        return is_same if gradients is None else lambda: is_same() and gradients.is_same()

    def _found_or_anew(self) -> _Captured:
        """What is captured for the modes and the gradients of now, or is to be: nothing is where what it
        reads has changed.

        Raises CaptureError where that happens again and again.
        """
        now = modes_now()
        captures = self._captures.setdefault(now, [_Captured()])
        for found in reversed(captures):
            with contextlib.suppress(*GONE):
                if found.is_same():
                    return found
        newest = captures[-1]
        if newest.guards is None:
            return newest
        change = newest.guards.change()
        is_of_gradients = change is None and newest.gradients is not None
        if change is None and newest.gradients is not None:
            change = newest.gradients.change()
        if change is None:
            newest.is_same = self._check_of(newest)
            return newest
        self._changes = self._changes + 1 if newest.replays < _FEW_REPLAYS else 0
        if self._changes >= _MOST_CHANGES:
            raise CaptureError(
                f"captured function: expected what it reads of Python to stay the same for some calls, got "
                f"another value every few calls of {change}: {change.remedy}"
            )
        if is_of_gradients:  # leaves have gradients in turn, and none: a capture of each, without a first run
            written, arguments = newest.written, newest.written_arguments
            anew = _Captured(has_run=True, written=written, written_arguments=arguments)
            self._captures[now] = [*captures[-_MOST_CHANGES:], anew]
        else:
            self._captures[now] = [_Captured()]
        return self._captures[now][-1]

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
