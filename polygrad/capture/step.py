"""`compile_step`: a whole training step (forward, backward, optimizer) as one Program."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from polygrad.capture.arguments import Parameters, Spec, clone_tensors, result_names
from polygrad.capture.c_options import COptions
from polygrad.capture.capture import capture
from polygrad.capture.guards import GONE, Guards
from polygrad.capture.replay import CapturedStep, check
from polygrad.capture.save import save_step
from polygrad.errors import ArgumentError, CaptureError
from polygrad.monitor import computing
from polygrad.nn.optim import Optimizer, OptimizerGroup
from polygrad.nn.state import get_parameters, get_state_dict
from polygrad.runtime.program import Program
from polygrad.tensor.core.convert import array_like, from_memoryview
from polygrad.tensor.tensor import Tensor


class CompiledStep:
    """A training step made by `compile_step`."""

    def __init__(
        self,
        step: CapturedStep,
        inputs: list[Tensor],
        names: list[str],
        state: dict[str, Tensor],
        guards: Guards,
    ) -> None:
        self._step, self._names, self._state, self._guards = step, names, state, guards
        self._inputs: list[Tensor | None] = [*inputs]  # None: an array, copied
        self._specs = [Spec(f"input {i}", x.shape, x.dtype, x.device) for i, x in enumerate(inputs)]
        self._has_run = False

    @computing
    def run(self, *inputs: Any) -> Any:
        """Take one step. Returns the results of the function, the loss first; they are the same Tensors each
        time.

        `inputs`: Tensors or arrays with the shapes and dtypes of those it was compiled with, which they
        replace from now on. Without inputs, those of the last run are used. Raises ShapeError, DTypeError,
        DeviceError, ArgumentError; CaptureError when a Python value that the step reads has changed since it
        was compiled.
        """
        self._check_values()
        if inputs:
            self._set(inputs)
        result = self._step.run(self._inputs)
        self._has_run = True
        return result

    def _check_values(self) -> None:
        try:
            if self._guards.is_same():
                return
        except GONE:
            pass
        if (mode := self._guards.missing_check()) is not None:
            raise CaptureError(
                f"run: the step was compiled without {mode}=1 and is run with it: call compile_step again"
            )
        change = self._guards.change()
        if change is not None:
            raise CaptureError(
                f"run: {change} has changed since the step was compiled: "
                "call compile_step again, or keep the value in a Tensor and assign to it"
            )

    def _set(self, inputs: tuple[Any, ...]) -> None:
        if len(inputs) != len(self._inputs):
            raise ArgumentError(
                f"run: expected {len(self._inputs)} inputs, or none to reuse the last ones, got {len(inputs)}"
            )
        for i, x in enumerate(inputs):
            if isinstance(x, Tensor):
                self._inputs[i] = x
                continue
            view = array_like(x)
            if view is None or isinstance(view, (list, tuple)):
                raise ArgumentError(f"input {i}: expected a Tensor or an array, got {type(x).__name__}")
            raw, dtype, shape = from_memoryview(view)
            spec = self._specs[i]
            check(spec, shape, dtype, spec.device)
            self._step.bind_data(i, raw)
            self._inputs[i] = None

    def loss_value(self) -> float:
        """The loss of the last run. Raises CaptureError before the first."""
        if not self._has_run:
            raise CaptureError("loss_value: the step has not run yet: call run()")
        result = self._step.result
        return float((result[0] if isinstance(result, tuple) else result).item())

    def save(
        self, path: str | os.PathLike[str], inputs: Sequence[str] | None = None, *, c: COptions | None = None
    ) -> None:
        """Write the step to the file `path`, with the present values of parameters and state, to be run
        without the function, or without Python. A name that ends in .c asks for C, with a header beside it,
        and the options `c`.

        Inputs have the names `inputs`, by default those of the function's parameters after the model.
        Parameters have those of `nn.state.get_state_dict(model)`. The optimizer's state has such names with
        the prefix `optimizer.`, as `optimizer.lr`. The first output is `loss`; others are `output1` and so
        on, or keys of a dict.

            step.save("model.pgrd")
            polygrad.export.load("model.pgrd", native=True).run(x=x, y=y)["loss"]

        Raises ArgumentError for results that are views of memory, or state, and unless `inputs` has a name of
        its own for each input.
        """
        count = len(self._names)
        if inputs is not None and (len(inputs) != count or len(set(inputs)) != count):
            raise ArgumentError(f"save: inputs: expected {count} different names, got {list(inputs)}")
        outputs = result_names(self._step.result, "loss")
        names = self._names if inputs is None else list(inputs)
        save_step(self._step, path, names, outputs, self._state, c)

    @property
    def program(self) -> Program:
        """The step as a Program. Raises CaptureError if there are Programs on several devices: see
        `programs`."""
        return self._step.captured.program

    @property
    def programs(self) -> list[Program]:
        """The Programs that one step runs: one, or some for each of several devices."""
        return self._step.captured.programs

    @property
    def n_kernels(self) -> int:
        """The number of kernels that one step launches."""
        return sum(len(program.launches) for program in self.programs)

    @property
    def n_intermediates(self) -> int:
        """The number of buffers in the arenas."""
        return sum(buffer is None for buffer in self._step.captured.buffers)

    @property
    def arena_bytes(self) -> int:
        """The size of the arena, or the sum over several devices: the memory of all intermediates."""
        arenas = {program.device: program.arena for program in self.programs}
        return sum(arenas.values())

    @property
    def arena_lower_bound(self) -> int:
        """The most bytes of intermediates that are live at one time: a lower bound of the arena's size."""
        return self._step.captured.arena_lower_bound


def input_specs(step: CompiledStep) -> list[Spec]:
    """The required shapes and dtypes of the inputs of `run`."""
    return step._specs


def compile_step(
    fn: Callable[..., Any], model: Any, opt: Optimizer | OptimizerGroup, *inputs: Any
) -> CompiledStep:
    """A training step as one Program: `fn(model, *inputs)`, backward, and the optimizer's step.

    This compiles the step without running it.

        step = compile_step(lambda model, x, y: model(x).cross_entropy(y), model, opt, x, y)
        for x, y in batches:
            step.run(x, y)
        print(step.loss_value())

    fn: returns the loss, a Tensor of one element, or (loss, more Tensors). It is called once, in training
        mode; gradients start from none and are not kept. Its other assignments are carried out in every step.
    model: its Tensors (`nn.state.get_parameters`) are computed now, if they are lazy.
    inputs: Tensors or arrays. Their shapes and dtypes stay.

    Learning rates are Tensors: assign to `opt.lr` between steps, or in `fn`. Random numbers (dropout) differ
    from step to step. Python values that `fn`, the model and the optimizer read by name (`model.p`,
    `opt.weight_decay`; see `TinyJit`) must not change: `run` raises CaptureError if they do. Raises
    CaptureError when `fn` does something that a replay cannot do (see `TinyJit`), GradientError,
    ArgumentError.
    """

    def update(result: Any) -> Any:
        opt.schedule_step()
        return result

    return capture_step(fn, model, opt, inputs, update, opt.zero_grad)


def capture_step(
    fn: Callable[..., Any],
    model: Any,
    opt: Optimizer | OptimizerGroup,
    inputs: Sequence[Any],
    update: Callable[[Any], Any],
    zero_grad: Callable[[], None],
) -> CompiledStep:
    """`compile_step`, with `update(result)` in the place of the optimizer's step. It is called once, after
    backward, with what `fn` returned, and returns what the step is to return. `zero_grad` discards all
    gradients."""
    tensors = [Tensor(x) for x in inputs]
    state = [*get_parameters(model), *get_parameters(opt)]
    if state:
        state[0].realize(*state[1:])

    parameters = Parameters(fn)
    named = parameters.named((model, *tensors), {})
    guards = Guards([(fn, named), (opt.schedule_step, {})])

    def call() -> Any:
        with Tensor.train():
            result = fn(model, *tensors)
            loss = result[0] if isinstance(result, tuple) else result
            if not isinstance(loss, Tensor) or loss.numel() != 1:
                actual = loss.shape if isinstance(loss, Tensor) else type(loss).__name__
                raise ArgumentError(
                    "compile_step: expected fn to return a loss of one element, or a tuple of it, got "
                    f"{actual}"
                )
            zero_grad()
            loss.reshape(()).backward()
            result = update(result)
            guards.check_unchanged("compile_step")
            return clone_tensors(result, tensors)

    step = capture(call, tensors, [f"input {i}" for i in range(len(tensors))], zero_grad)
    names = parameters.names((model, *tensors), {}, skip=1)
    optimizer = {f"optimizer.{name}": t for name, t in get_state_dict(opt).items()}
    return CompiledStep(step, tensors, names, get_state_dict(model) | optimizer, guards)
