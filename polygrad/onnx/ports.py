"""Inputs and outputs of a model: their declarations, and conversion of values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError, DTypeError, ShapeError
from polygrad.onnx.elements import ELEMENTS, STRING, element_name
from polygrad.onnx.proto import Type, ValueInfo
from polygrad.onnx.values import Constant, Narrow, Strings, Value, held
from polygrad.tensor.core.convert import array_like, flatten, from_memoryview, nest, unpack
from polygrad.tensor.core.sizes import equal
from polygrad.tensor.tensor import Tensor

_LONGEST_SHAPE = 64  # an integer vector of this size may be a shape


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: its name, dtype and shape.

    A size is an int, the name of a symbolic one, or None. `dtype` is that of the Tensor that holds it, None
    for what no Tensor is; `kind` is 'tensor', 'sequence', 'optional' or another of ONNX's; `element` is the
    number of the element type; `shape` is None where the file does not say it; `inner`: what a sequence or an
    optional holds.
    """

    name: str
    dtype: DType | None
    shape: tuple[int | str | None, ...] | None
    kind: str = "tensor"
    element: int = 0
    inner: Port | None = None

    def sizes(self, named: Mapping[str, int]) -> tuple[int, ...]:
        """The shape with numbers for its symbolic sizes."""
        return tuple([named[n] if isinstance(n, str) else n or 0 for n in self.shape or ()])

    def __str__(self) -> str:
        if self.kind != "tensor":
            return f"{self.name}: {self.kind}"
        sizes = "?" if self.shape is None else ", ".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.name}: {element_name(self.element)} ({sizes})"


def port_of(info: ValueInfo) -> Port:
    """The declaration of a value in a file."""
    return _port(info.name, info.type)


def _port(name: str, declared: Type | None) -> Port:
    if declared is None:
        return Port(name, None, None)
    element = ELEMENTS.get(declared.element)
    return Port(
        name,
        element.dtype if element is not None and declared.kind == "tensor" else None,
        declared.shape,
        declared.kind,
        declared.element,
        None if declared.inner is None else _port(name, declared.inner),
    )


def from_host(port: Port, value: Any, sizes: dict[str, Any], device: str | None) -> Value:
    """What was given for an input, as a Value. `sizes`: what symbolic sizes are so far.

    Raises DTypeError, ShapeError, ArgumentError.
    """
    if port.kind == "optional":
        return (
            None
            if value is None
            else from_host(port.inner or Port(port.name, None, None), value, sizes, device)
        )
    if port.kind == "sequence":
        if not isinstance(value, (list, tuple)):
            raise ArgumentError(f"forward: input {port.name!r} is a sequence, got {type(value).__name__}")
        inner = port.inner or Port(port.name, None, None)
        return [from_host(inner, x, {}, device) for x in value]
    if port.element == STRING:
        return _strings(port, value, sizes)
    element = ELEMENTS.get(port.element)
    if element is None:
        return value if isinstance(value, Tensor) else Tensor(value, device)
    out: Value = value
    if not isinstance(value, Tensor):
        out = _small_integers(value) if element.dtype is dtypes.int64 else None
        if out is None:
            is_list = isinstance(value, (bool, int, float, list, tuple))
            out = Tensor(value, device, element.dtype if is_list else None)
    assert isinstance(out, (Tensor, Constant))
    if out.dtype is not element.dtype:
        raise DTypeError(f"forward: input {port.name!r} is {element.dtype}, got {out.dtype}: cast it")
    _check_shape(port, out.shape, sizes)
    return out if isinstance(out, Constant) else held(out, element)


def _small_integers(value: Any) -> Constant | None:
    """An int64 scalar or short vector that is no Tensor, as a Constant."""
    if isinstance(value, (int, list, tuple)):
        flat, shape = flatten(value) if isinstance(value, (list, tuple)) else ([value], ())
        if len(shape) <= 1 and len(flat) <= _LONGEST_SHAPE and all(type(n) is int for n in flat):
            return Constant(dtypes.int64, shape, flat)
        return None
    view = array_like(value)
    if not isinstance(view, memoryview) or view.ndim > 1 or view.nbytes > 8 * _LONGEST_SHAPE:
        return None
    raw, dtype, own = from_memoryview(view)
    return Constant(dtype, own, unpack(raw, dtype)) if dtype is dtypes.int64 else None


def _strings(port: Port, value: Any, sizes: dict[str, Any]) -> Strings:
    value = value.tolist() if hasattr(value, "tolist") else value
    flat, shape = flatten(value) if isinstance(value, (list, tuple)) else ([value], ())
    other = next((x for x in flat if not isinstance(x, str)), None)
    if other is not None:
        raise DTypeError(f"forward: input {port.name!r}: expected text, got {other!r}")
    _check_shape(port, shape, sizes)
    return Strings(shape, flat)


def _check_shape(port: Port, shape: tuple[Any, ...], sizes: dict[str, Any]) -> None:
    """Raises ShapeError."""
    if port.shape is None:
        return
    fits = len(shape) == len(port.shape)
    for declared, n in zip(port.shape, shape):
        expected = sizes.setdefault(declared, n) if isinstance(declared, str) else declared
        fits = fits and (expected is None or equal(expected, n))
    if not fits:
        bound = {k: v for k, v in sizes.items() if k in port.shape}
        known_sizes = f" with {bound}" if bound else ""
        raise ShapeError(f"forward: input {port.name!r} has shape {port.shape}{known_sizes}, got {shape}")


def to_host(value: Value, device: str | None) -> Any:
    """An output: a Tensor, nested lists of str, a list of outputs, or None."""
    if isinstance(value, Constant):
        return Constant(value.dtype, value.shape, value.numbers).tensor(device)  # not shared with later calls
    if isinstance(value, Narrow):
        return value.tensor
    if isinstance(value, Strings):
        return nest(value.texts, value.shape)
    return [to_host(x, device) for x in value] if isinstance(value, list) else value
