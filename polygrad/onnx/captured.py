"""A model's forward captured once for all sizes of its symbolic dimensions, and saved as a file that runs
without it.

Each input lies at the start of memory for its largest size, with Variables in its shape. So all sizes within
the bounds replay the same Program. Values that depend on initializers alone (weights in the order in which
products read them) are computed once, and again when the initializers are written to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from polygrad.capture.jit import TinyJit
from polygrad.errors import ArgumentError, OnnxError, ShapeError
from polygrad.helpers import THREAD_VARIABLES, prod
from polygrad.onnx.ports import Port, from_host, to_host
from polygrad.tensor.core.sizes import value_with
from polygrad.tensor.tensor import Tensor
from polygrad.tensor.variable import Variable
from polygrad.uop.node import UOp


class CapturedForward:
    """The result of `Instance.capture`. `variables`: the Variable of each symbolic size that is not fixed.

    `prune`: work that depends on no input is done once, not in each call.
    """

    def __init__(
        self,
        forward: Callable[[dict[str, Any]], dict[str, Any]],
        ports: tuple[Port, ...],
        parameters: Mapping[str, Tensor],
        device: str | None,
        bounds: Mapping[str, int | tuple[int, int]],
        prune: bool = True,
    ) -> None:
        self._ports, self._parameters, self._device = tuple(map(_name_sizes, ports)), parameters, device
        self._bounds = _check_bounds(self._ports, bounds)
        self.variables = _variables(self._bounds)

        def call(**inputs: Any) -> dict[str, Any]:
            outputs: dict[str, Any] = {}
            for name, y in forward(inputs).items():
                if not isinstance(y, Tensor):
                    raise OnnxError(f"capture: output {name!r} is no tensor")
                outputs[name] = y.clone()  # it may be an input, a parameter, or another output
            return outputs

        self._jit = TinyJit(call, prune=prune)

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **more: Any) -> dict[str, Tensor]:
        """The outputs by name, for inputs as `Instance.forward` takes them. The next call overwrites them.

        Raises ArgumentError, ShapeError, DTypeError for inputs that do not fit; CaptureError for a model in
        which computed numbers decide what is computed next.
        """
        values = {**(inputs or {}), **more}
        names = [port.name for port in self._ports]
        if set(names) != set(values):
            raise ArgumentError(f"forward: expected the inputs {names}, got {list(values)}")
        sizes: dict[str, Any] = {}
        tensors = {p.name: _tensor(p, values[p.name], sizes, self._device) for p in self._ports}
        for name, (lo, hi) in self._bounds.items():
            if not lo <= sizes[name] <= hi:
                expected = f"from {lo} to {hi}" if hi > lo else str(hi)
                raise ShapeError(f"forward: expected size {name!r} to be {expected}, got {sizes[name]}")
        bound = {name: v.bind(sizes[name]) for name, v in self.variables.items()}
        arguments = {p.name: self._place(p, tensors[p.name], bound) for p in self._ports}
        return {name: _cut(y) for name, y in self._jit(**arguments).items()}

    def _place(self, port: Port, x: Tensor, bound: Mapping[str, Any]) -> Tensor:
        """An input in memory for its largest size, with Variables in its shape."""
        assert port.shape is not None
        named = {i: n for i, n in enumerate(port.shape) if isinstance(n, str) and n in bound}
        if not named:
            return x.realize()
        largest = [self._bounds[named[i]][1] if i in named else n for i, n in enumerate(x.shape)]
        shape = [bound[named[i]] if i in named else n for i, n in enumerate(x.shape)]
        raw = x.data().cast("B") if x.numel() else b""
        # Padded on the host, because on the device each size would need its own kernel.
        whole = Tensor(bytes(raw).ljust(prod(largest) * x.dtype.itemsize, b"\0"), x.device, x.dtype).realize()
        return whole[: prod(shape)].reshape(shape)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was captured to a `.pgrd` file, for `polygrad.export.load` and `polygrad/runtime`.

        Raises CaptureError before the second call, ArgumentError for an output with a size that is computed
        from symbolic ones.
        """
        self._jit.save(path, dict(self._parameters))

    def warm(self) -> None:
        """Capture with zeros of the largest sizes."""
        largest = {name: hi for name, (_, hi) in self._bounds.items()}
        for _ in range(2):
            self(
                {
                    p.name: Tensor.zeros(p.sizes(largest), dtype=p.dtype, device=self._device)
                    for p in self._ports
                }
            )


def _name_sizes(port: Port) -> Port:
    """An input whose sizes all have names: `x.0` where the file has none."""
    if port.shape is None:
        return port
    return replace(
        port, shape=tuple([f"{port.name}.{i}" if n is None else n for i, n in enumerate(port.shape)])
    )


def _check_bounds(
    ports: tuple[Port, ...], bounds: Mapping[str, int | tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """The least and the largest of each symbolic size. Raises ArgumentError."""
    for port in ports:
        if port.kind != "tensor" or port.dtype is None or port.shape is None:
            raise ArgumentError(f"capture: expected inputs that are tensors of a known rank, got {port}")
    names = dict.fromkeys(n for p in ports for n in p.shape or () if isinstance(n, str))
    if set(names) != set(bounds):
        raise ArgumentError(f"capture: expected bounds of the sizes {list(names)}, got {dict(bounds)}")
    pairs = {n: (b, b) if isinstance(b, int) else (b[0], b[1]) for n, b in bounds.items()}
    for name, (lo, hi) in pairs.items():
        if not 0 < lo <= hi:
            raise ArgumentError(f"capture: expected bounds of {name!r} from 1 in order, got {bounds[name]}")
    return {name: pairs[name] for name in names}


def _variables(bounds: Mapping[str, tuple[int, int]]) -> dict[str, UOp]:
    """A Variable for each size that is not fixed. Its name occurs in kernels, so it is an identifier."""
    identifiers: dict[str, str] = {}
    for name in bounds:
        plain = re.sub(
            r"\W",
            "_",
            f"n_{name}" if name in THREAD_VARIABLES or name[:1].isdigit() else name,
            flags=re.ASCII,
        )
        while plain in identifiers.values():
            plain += "_"
        identifiers[name] = plain
    return {name: Variable(identifiers[name], lo, hi) for name, (lo, hi) in bounds.items() if lo < hi}


def _tensor(port: Port, value: Any, sizes: dict[str, Any], device: str | None) -> Tensor:
    """An input as a Tensor, also where integers could stay on the host. Raises ShapeError, DTypeError."""
    tensor = to_host(from_host(port, value, sizes, device), device)
    assert isinstance(tensor, Tensor)
    return tensor


def _cut(y: Tensor) -> Tensor:
    """A result with ints for its sizes."""
    if all(isinstance(n, int) for n in y.shape):
        return y
    return y[tuple([slice(0, value_with(n)) for n in y.shape])]
