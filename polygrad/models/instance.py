"""`Instance`: a complete model, as loaders of checkpoints return it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from polygrad import nn
from polygrad.capture.c_options import COptions
from polygrad.capture.jit import TinyJit
from polygrad.capture.step import CompiledStep, compile_step
from polygrad.errors import ArgumentError, ShapeError
from polygrad.nn.optimizer import Optimizer, OptimizerGroup
from polygrad.nn.panels import convert_layout
from polygrad.nn.parameter import keeps_dtype
from polygrad.nn.quantize import quantize
from polygrad.tensor.tensor import Tensor

# Small weights with a large effect: they select the experts of a token.
NOT_QUANTIZED = ("router", "shared_expert_gate")


class Instance:
    """A model: named inputs to named outputs, weights in and out, a training step, an exported file.

    `module`: the object that holds its Tensors; its method `forward` takes the inputs by name and gives a
    dict. `device`: where inputs go.
    """

    def __init__(self, module: Any, device: str | None = None) -> None:
        self.module, self.device = module, device
        self._optimizer: Optimizer | OptimizerGroup | None = None
        self._steps: dict[Any, CompiledStep] = {}

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names that `forward` takes."""
        return tuple(inspect.signature(self.module.forward).parameters)

    def forward(self, inputs: Mapping[str, Any] | None = None, /, **more: Any) -> dict[str, Any]:
        """The outputs by name, for inputs by name: Tensors, arrays, lists or options.

        Lists of integers become int32. Nothing is computed until an output is read. Raises ArgumentError for
        an input that does not exist.
        """
        values = {**(inputs or {}), **more}
        self._check(values)
        out: dict[str, Any] = self.module.forward(**{k: self._tensor(v) for k, v in values.items()})
        return out

    __call__ = forward

    def weights(self) -> dict[str, Tensor]:
        """The weights by name: the Tensors themselves, no copies."""
        out: dict[str, Tensor] = nn.state.get_state_dict(self.module)
        return out

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Set the named weights to these values, converted to their dtypes, and planes of packed weights to
        their layouts. All or none are set.

        Raises ArgumentError for a name that does not exist, ShapeError.
        """
        old_weights, values = self.weights(), {}
        for name, value in weights.items():
            if name not in old_weights:
                raise ArgumentError(f"set_weights: there is no weight {name!r}")
            values[name] = value if isinstance(value, Tensor) else Tensor(value)
            if keeps_dtype(old_weights[name]):
                values[name] = convert_layout(values[name], old_weights[name].shape)
            if values[name].shape != old_weights[name].shape:
                raise ShapeError(
                    f"set_weights: {name}: expected shape {old_weights[name].shape}, got {values[name].shape}"
                )
        with Tensor.no_grad():
            for name, value in values.items():
                old_weights[name].assign(
                    value.detach().to(old_weights[name].device).cast(old_weights[name].dtype)
                )
        if values:
            first, *other_weights = (old_weights[name] for name in values)
            first.realize(*other_weights)

    def quantize(
        self, kind: str, skip: str | Iterable[str] = NOT_QUANTIZED, activations: str | None = None
    ) -> None:
        """Pack the weights of products and embeddings in few bits, in place: see `polygrad.quantize`.

        From then on `train_step` trains the remaining weights, biases and norms. Raises ArgumentError.
        """
        quantize(self.module, kind, skip, activations)
        self.forget_captures()

    @property
    def optimizer(self) -> Optimizer | OptimizerGroup:
        """The optimizer of `train_step`: AdamW with a learning rate of 5e-5 over all weights that require
        gradients, unless another is assigned."""
        if self._optimizer is None:
            trained = [p for p in nn.state.get_parameters(self.module) if p.requires_grad]
            self._optimizer = nn.optim.AdamW(trained, lr=5e-5, weight_decay=0.0)
        return self._optimizer

    @optimizer.setter
    def optimizer(self, value: Optimizer | OptimizerGroup) -> None:
        self._optimizer, self._steps = value, {}

    def forget_captures(self) -> None:
        """Let the next call capture anew, with an optimizer for the weights that then require gradients. It
        is called after layers or weights were replaced."""
        self._optimizer, self._steps = None, {}

    def train_step(self, inputs: Mapping[str, Any] | None = None, /, **more: Any) -> Tensor:
        """One step of training on a batch, with `labels`, as one Program; its loss, a Tensor of one element.

        The first batch of each set of shapes is compiled. Raises ArgumentError where the outputs have no
        `loss`.
        """
        given = {k: self._tensor(v) for k, v in {**(inputs or {}), **more}.items()}
        self._check(given)
        names = tuple(given)
        tensors = [t if isinstance(t, Tensor) else None for t in given.values()]
        if None in tensors:
            raise ArgumentError("train_step: expected arrays or Tensors as inputs")
        key = tuple((name, t.shape, t.dtype) for name, t in given.items())
        if key not in self._steps:

            def loss_of(module: Any, *values: Tensor) -> Tensor:
                out = module.forward(**dict(zip(names, values, strict=True)))
                if "loss" not in out:
                    raise ArgumentError(
                        f"train_step: expected an output 'loss', got {', '.join(out)}: pass labels"
                    )
                loss: Tensor = out["loss"]
                return loss

            self._steps[key] = compile_step(loss_of, self.module, self.optimizer, *tensors)
        loss: Tensor = self._steps[key].run(*tensors)
        return loss

    def export(
        self,
        path: Any,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        c: COptions | None = None,
        **more: Any,
    ) -> None:
        """Write the file `path` (.pgrd) that computes the outputs for inputs of the shapes of these, without
        Python: see `polygrad.export`. A name that ends in .c asks for C, with the options `c`. Raises
        ArgumentError."""
        tensors = {k: self._tensor(v) for k, v in {**(inputs or {}), **more}.items()}
        self._check(tensors)
        if not tensors:
            raise ArgumentError("export: expected an example of each input, got none")
        module, names = self.module, list(tensors)
        captured = TinyJit(_with_parameters(names, lambda **values: module.forward(**values)))
        with Tensor.no_grad():
            for _ in range(2):  # the second call captures
                captured(**tensors)
        captured.save(path, module, c=c)

    def _check(self, values: Mapping[str, Any]) -> None:
        unknown_names = [name for name in values if name not in self.input_names]
        if unknown_names:
            raise ArgumentError(
                f"inputs: expected some of {', '.join(self.input_names)}, got {unknown_names[0]!r}"
            )

    def _tensor(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, Tensor):
            return value if self.device is None else value.to(self.device)
        tensor = Tensor(value, self.device)
        return tensor.cast("int32") if isinstance(value, (list, tuple)) and tensor.dtype.is_int else tensor


def _with_parameters(names: list[str], function: Any) -> Any:
    """`function` with a signature of these parameters, by which exported inputs are named."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(**dict(zip(names, args)), **kwargs)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
    return call
