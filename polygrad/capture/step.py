"""`compile_step`: a whole training step (forward, backward, optimizer) as one Program."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from polygrad.capture.arguments import Parameters, Spec, clone_tensors, result_names
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
        """Take one step; what the function returned, the loss first: the same Tensors each time.

        `inputs`: Tensors or arrays of the shapes and dtypes of those it was compiled with, which are used in
        their place from now on; none: those of the last run again. Raises ShapeError, DTypeError,
        DeviceError, ArgumentError; CaptureError when a value of Python that the step reads is another than
        when it was compiled.
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
                f"run: expected a step compiled with {mode}=1, as it is run with it, got one without: call "
                "compile_step again"
            )
        change = self._guards.change()
        if change is not None:
            raise CaptureError(
                f"run: expected what the step reads of Python to stay as compiled, got another value of "
                f"{change}: call compile_step again, or keep it in a Tensor that is assigned to"
            )

    def _set(self, inputs: tuple[Any, ...]) -> None:
        if len(inputs) != len(self._inputs):
            raise ArgumentError(
                f"run: expected {len(self._inputs)} inputs, or none for the last again, got {len(inputs)}"
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the step to the file `path`, with what parameters and state hold now, to be run without the
        function, or without Python.

        Inputs have the names of the function's parameters behind the model, parameters those of
        `nn.state.get_state_dict(model)`, the optimizer's state the same behind `optimizer.`, as in
        `optimizer.lr`. The first output is `loss`, others are `output1` and so on, or keys of a dict.

            step.save("model.pgrd")
            polygrad.export.load("model.pgrd").run(x=x, y=y)["loss"]

        Raises ArgumentError for results that are views of memory or state itself.
        """
        outputs = result_names(self._step.result, "loss")
        save_step(self._step, path, self._names, outputs, self._state)

    @property
    def program(self) -> Program:
        """The step as a Program. Raises CaptureError where it has some on several devices: see `programs`."""
        return self._step.captured.program

    @property
    def programs(self) -> list[Program]:
        """What one step runs: one Program, or with several devices some for each."""
        return self._step.captured.programs

    @property
    def n_kernels(self) -> int:
        """How many kernels one step launches."""
        return sum(len(program.launches) for program in self.programs)

    @property
    def n_intermediates(self) -> int:
        """How many buffers of the arenas it uses."""
        return self._step.captured.roles.count("scratch")

    @property
    def arena_bytes(self) -> int:
        """The size of the arena, or of each device's together: the memory of all intermediates."""
        arenas = {program.device: program.arena for program in self.programs}
        return sum(arenas.values())

    @property
    def arena_lower_bound(self) -> int:
        """The most bytes of intermediates alive at one time: no arena can be smaller."""
        return self._step.captured.arena_lower_bound


def input_specs(step: CompiledStep) -> list[Spec]:
    """What the inputs of `run` have to be like."""
    return step._specs


def compile_step(
    fn: Callable[..., Any], model: Any, opt: Optimizer | OptimizerGroup, *inputs: Any
) -> CompiledStep:
    """A training step as one Program: `fn(model, *inputs)`, backward, and the optimizer's step.

    Nothing is run yet.

        step = compile_step(lambda model, x, y: model(x).cross_entropy(y), model, opt, x, y)
        for x, y in batches:
            step.run(x, y)
        print(step.loss_value())

    fn: returns the loss, a Tensor of one element, or (loss, more Tensors). It is called once, in training
        mode; gradients start from nothing and are not kept. What else it assigns to is computed with every
        step.
    model: whose Tensors (`nn.state.get_parameters`) are computed now, where they are lazy.
    inputs: Tensors or arrays. Their shapes and dtypes stay.

    Learning rates are Tensors: assign to `opt.lr` between steps, or in `fn`. Random numbers (dropout) go on
    from step to step. What `fn`, the model and the optimizer read of Python (`model.p`, `opt.weight_decay`)
    must stay, as far as the code names it (see `TinyJit`): `run` raises CaptureError when it changes. Raises
    CaptureError when `fn` does what a replay cannot (see `TinyJit`), GradientError, ArgumentError.
    """
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
                got = loss.shape if isinstance(loss, Tensor) else type(loss).__name__
                raise ArgumentError(
                    f"compile_step: expected fn to return a loss of one element, or a tuple of it, got {got}"
                )
            opt.zero_grad()
            loss.reshape(()).backward()
            opt.schedule_step()
            guards.check_unchanged("compile_step")
            return clone_tensors(result, tensors)

    step = capture(call, tensors, [f"input {i}" for i in range(len(tensors))], opt.zero_grad)
    names = parameters.names((model, *tensors), {})[-len(tensors) :] if tensors else []
    optimizer = {f"optimizer.{name}": t for name, t in get_state_dict(opt).items()}
    return CompiledStep(step, tensors, names, get_state_dict(model) | optimizer, guards)
