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

from polygrad.capture.arguments import Arguments, Parameters, result_names, split_arguments, tensors_in
from polygrad.capture.c_options import COptions
from polygrad.capture.capture import capture, tensors_with_writes
from polygrad.capture.gradients import LeftGradients
from polygrad.capture.guards import GONE, Guards, modes_now
from polygrad.capture.replay import CapturedStep
from polygrad.capture.save import save_step
from polygrad.engine.recording import watch
from polygrad.engine.stopping import unstoppable
from polygrad.errors import CaptureError
from polygrad.monitor import computing, exclusive, synchronized
from polygrad.nn.state import get_state_dict
from polygrad.runtime.program import Program
from polygrad.tensor.core.aliasing import Storage, realize_tensors, storage_of, watch_writes
from polygrad.tensor.core.base import TensorBase

_MIN_REPLAYS = 8  # after fewer, a capture was not worth it
_MAX_CHANGES = 4  # so many captures in a row that were not worth it are an error


@dataclass(slots=True)
class _Captured:
    """A capture for one set of modes, made or about to be made."""

    has_run: bool = False
    step: CapturedStep | None = None
    guards: Guards | None = None
    gradients: LeftGradients | None = None  # where the function reads or leaves any
    is_same: Callable[[], bool] = bool  # whether all that the function reads is what it was, and so are modes
    other_values: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of the Tensors among the arguments
    is_plain: bool = False  # whether it was called with Tensors by position, and leaves no gradients
    written_storages: Collection[Storage] = ()  # by the first call
    written_arguments: list[bool] = field(default_factory=list)  # which of its arguments it wrote to
    replays: int = 0


class TinyJit:
    """A decorator: the first call runs the function, the second captures it, later calls replay the capture.

        @TinyJit
        def step(x):
            return (x * w).sum()

    A replay does not run the function's Python code: one Program repeats all device work of the captured
    call, on the new arguments. So the shapes, dtypes and devices of Tensor arguments must not change
    (ShapeError, DTypeError, DeviceError), and other arguments must stay equal (CaptureError), except the
    values of bound `Variable`s, passed as arguments or in shapes. `f(x, 2)`, `f(x, k=2)` and `f(x)` with a
    default of 2 are the same call.

    Other values that the function reads by name are compared at each call: numbers, text, flags, Tensors and
    objects in closure variables, globals, attributes (`self.p`, `config.layers[0].p`) and items
    (`config["p"]`), also in methods and functions that it calls. If one has changed, the function is captured
    again. If one changes every few calls, or if the function itself changes it (a counter, which a replay
    would not advance), CaptureError names it. Each combination of modes (training, `no_grad`, default dtypes,
    `Device.DEFAULT`) has its own capture.

    - Results are the same Tensors on every call: the next call overwrites them (`clone` those that must
    last).
      They carry no gradient. A returned argument is the Tensor that was passed; a view of an argument is
      copied. Symbolic shapes follow the values of the Variables in the call, and so do views of results.
    - Decisions that depend on the values of Variables (whether an index is in range, where a slice ends) are
      made when the function is captured: a call whose values decide otherwise raises CaptureError.
    - Tensors that the function uses or assigns to, such as weights, keep their memory; replays see
      assignments between calls. Values computed from them between calls do not change, lazy or not.
    - `backward` adds to the existing gradients of leaves, also in a replay. If leaves have a gradient in some
      calls and none in others (accumulation), each case has its own capture.
    - Random numbers continue as if the function had been called.
    - Values without a name in the code are those of the captured call: random numbers of Python, the time,
      files, elements of arrays. Reading values (`item`, `numpy`, ...), copies between devices and
      `manual_seed` in the function raise CaptureError; then nothing is captured, and the next call tries
      again.

    `prune=True` (`@TinyJit(prune=True)`): work that depends on no argument, on no Variable and on nothing
    that the function writes is done once, before the first replay, and left out of replays: unpacking of
    weights, masks, tables of positions. It is repeated when its inputs were written to.

        @TinyJit(prune=True)
        def forward(x):
            return x @ (weights.cast("float32") * scale)  # multiplied once

    Called within another captured function, it is part of that capture. As a method, it has separate captures
    for each object.
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
        """A TinyJit of the same function, or of a copy of a bound method or object, with its own captures."""
        return TinyJit(copy.deepcopy(self._function, memo), prune=self._prune)

    def __copy__(self) -> TinyJit:
        return TinyJit(self._function, prune=self._prune)

    def __reduce__(self) -> Any:
        """The function, by its name. An unpickled TinyJit captures again."""
        target: Any = sys.modules.get(getattr(self._function, "__module__", ""))
        for part in getattr(self._function, "__qualname__", "").split("."):
            target = getattr(target, part, None)
        if target is self:  # a decorator: the function's name refers to the TinyJit
            return self._function.__qualname__
        return functools.partial(TinyJit, prune=self._prune), (self._function,)

    def reset(self) -> None:
        """Discard all captures: the next call runs the function, the one after it captures again."""
        self._captures: dict[tuple[Any, ...], list[_Captured]] = {}  # by modes; the newest last
        self._current = _Captured()  # of the last call
        self._changes = 0  # consecutive captures that a change soon made useless

    @property
    def captured(self) -> bool:
        """Whether the next call is a replay."""
        return self._current.step is not None

    @property
    def program(self) -> Program | None:
        """The captured Program, or None before the capture. Raises CaptureError if there are Programs on
        several devices: see `programs`."""
        step = self._current.step
        return step.captured.program if step is not None else None

    @property
    def programs(self) -> list[Program]:
        """The Programs that a replay runs: one, or some for each of several devices."""
        step = self._current.step
        return step.captured.programs if step is not None else []

    def save(self, path: str | os.PathLike[str], model: Any = None, *, c: COptions | None = None) -> None:
        """Write the captured step to the file `path`, to be run without the function, or without Python. A
        name that ends in .c asks for C, with a header beside it, and the options `c`.

        Inputs have the names of the function's parameters (`x`; `batch.image` in a dict), outputs the keys of
        a dict that it returns, or `output0` and so on. An argument that it writes to becomes state that
        stays in the exported model. `model`: an object whose Tensors have names (`nn.state.get_state_dict`)
        for those that the function uses; the others are `param0`, `state0` and so on.

            step.save("model.pgrd", model)
            polygrad.export.load("model.pgrd", native=True).run(x=x)

        Raises CaptureError before the second call, which captures; ArgumentError for what the file format
        cannot represent: results that are arguments or views, sizes computed from Variables.
        """
        captured = self._current
        if captured.step is None:
            raise CaptureError("save: the function is not captured yet: call it twice before")
        values = {} if model is None else get_state_dict(model)
        outputs = result_names(captured.step.result)
        save_step(captured.step, path, captured.names, outputs, values, c)

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
            current = self._current = self._select_capture()
        step = current.step
        if step is not None and current.is_plain and not kwargs and step.is_steady(args):
            current.replays += 1
            return step.rerun()
        values = self._parameters.values(args, kwargs)
        if not current.has_run:
            with unstoppable():  # its lazy writes would be carried out later
                return self._first(current, function, args, kwargs, values)
        arguments = split_arguments(values)
        if step is None:
            step = self._capture(current, function, args, kwargs, arguments)
        elif arguments.other_values != current.other_values:
            raise CaptureError(
                "captured function: expected the arguments that are not Tensors to stay "
                f"{current.other_values}, got {arguments.other_values}: pass Tensors or "
                "bound Variables, or call reset()"
            )
        current.replays += 1
        result = step.run(arguments.tensors, arguments.variables)
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
        """Run the function, record the Tensors that it writes to, and carry out the writes, as a replay
        does."""
        tensors = tensors_in(values)
        with watch_writes() as current.written_storages:
            result = exclusive(function)(*args, **kwargs)
        current.written_arguments = [t._storage in current.written_storages for t in tensors]
        writes = [t for t in tensors_with_writes() if storage_of(t) in current.written_storages]
        realize_tensors([*tensors_in(result), *writes])
        current.has_run = True
        return result

    def _capture(
        self,
        current: _Captured,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        arguments: Arguments,
    ) -> CapturedStep:
        assert self._parameters is not None
        named = self._parameters.named(args, kwargs)
        guards = Guards([(function, named)])

        def call() -> Any:
            result = function(*args, **kwargs)
            guards.check_unchanged("captured function")
            return result

        pairs = zip(tensors_in(list(named.values())), current.written_arguments, strict=False)
        written_storages = {
            *current.written_storages,
            *(storage_of(t) for t, is_written in pairs if is_written),
        }
        tensors = arguments.tensors
        names = [f"Tensor argument {i}" for i in range(len(tensors))]
        gradients = LeftGradients()
        step = capture(call, tensors, names, written=written_storages, prune=self._prune, gradients=gradients)
        current.guards, current.gradients = guards, gradients if gradients else None
        current.is_plain = not gradients and not kwargs and all(isinstance(x, TensorBase) for x in args)
        current.is_same = self._check_of(current)
        current.names = self._parameters.names(args, kwargs)
        current.other_values = arguments.other_values
        current.step = step  # at last: from now on it is captured
        return step

    @staticmethod
    def _check_of(current: _Captured) -> Callable[[], bool]:
        """A check of whether everything that the function reads is unchanged."""
        assert current.guards is not None
        is_same, gradients = current.guards.is_same, current.gradients
        return is_same if gradients is None else lambda: is_same() and gradients.is_same()

    def _select_capture(self) -> _Captured:
        """The capture for the present modes and gradients: an existing one if the values that it reads are
        unchanged, else a new one, to be made.

        Raises CaptureError if the values keep changing.
        """
        now = modes_now()
        captures = self._captures.setdefault(now, [_Captured()])
        for candidate in reversed(captures):
            with contextlib.suppress(*GONE):
                if candidate.is_same():
                    return candidate
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
        self._changes = self._changes + 1 if newest.replays < _MIN_REPLAYS else 0
        if self._changes >= _MAX_CHANGES:
            raise CaptureError(
                f"captured function: {change} changes every few calls, so each capture is soon useless: "
                f"{change.remedy}"
            )
        if is_of_gradients:  # leaves alternate between gradients and none: capture both, without a first run
            written_storages, arguments = newest.written_storages, newest.written_arguments
            anew = _Captured(has_run=True, written_storages=written_storages, written_arguments=arguments)
            self._captures[now] = [*captures[-_MAX_CHANGES:], anew]
        else:
            self._captures[now] = [_Captured()]
        return self._captures[now][-1]

    @synchronized
    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        if owner is None:
            return self
        key = id(owner)
        entry = self._of.get(key)
        if entry is None:
            forget = functools.partial(_forget, self._of, key)
            entry = self._of[key] = (weakref.ref(owner, forget), TinyJit(self._function, prune=self._prune))
        return _Method(entry[1], owner)


def _forget(table: dict[int, Any], key: int, _: Any) -> None:
    table.pop(key, None)


class _Method:
    """A captured function bound to one object, its first argument."""

    __slots__ = ("_jit", "_owner")

    def __init__(self, jit: TinyJit, owner: Any) -> None:
        self._jit, self._owner = jit, owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        jit = self._jit
        return jit._call(functools.partial(jit._function, self._owner), args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jit, name)
