"""Creation of Tensors: constants, ranges.

They are constants of the graph, without memory until they are stored.
"""

from __future__ import annotations

from typing import Any, Self

from polygrad.dtype import DType, dtypes, to_dtype
from polygrad.engine.devices import Device, placement_of
from polygrad.engine.sharding import axis_of
from polygrad.errors import ArgumentError, DTypeError
from polygrad.helpers import ceildiv
from polygrad.tensor.core.base import DTypeLike, TensorBase, broadcast_constant, broadcast_to, check_fits
from polygrad.tensor.core.sizes import args_of, check_shape, is_size, larger, python_number
from polygrad.uop.args import Sharding
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.sizes import canonical


def place_on_device(uop: UOp, device: str | tuple[str, ...] | None) -> tuple[UOp, Any]:
    """Place a constant node on `device`, or on each of several; None: on no device. Raises DeviceError."""
    if device is None:
        return uop, None
    name = placement_of(device)
    if isinstance(name, tuple):
        return uop.copy_to(Sharding(name, None)), name
    Device.backend(name)
    return uop, name


class CreationMixin(TensorBase):
    """Creation. `shape` is given as one sequence or as arguments; `dtype` defaults to the default float."""

    __slots__ = ()

    @classmethod
    def full(
        cls,
        shape: Any,
        fill_value: Any,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
        contiguous: bool = False,
        buffer: bool = False,
    ) -> Self:
        """`fill_value` everywhere, in its own dtype unless `dtype` is given.

        It is a constant, without memory until it is written to. `contiguous` (or `buffer`, another name for
        it): it gets memory of its own when it is computed. Raises ShapeError, OverflowError_.

        >>> Tensor.full((2, 2), 7).tolist()
        [[7, 7], [7, 7]]
        """
        if contiguous or buffer:
            return cls.full(shape, fill_value, dtype, device, requires_grad)._stored()
        shape, fill_value = check_shape(args_of(shape, ()), "full"), python_number(fill_value)
        if isinstance(fill_value, UOp) and not fill_value.shape:
            scalar = cls(fill_value, dtype=dtype).uop  # type: ignore[call-arg]
            return cls._of(*place_on_device(broadcast_to(scalar, shape), device), requires_grad)
        to = dtypes.from_py(fill_value) if dtype is None else to_dtype(dtype)
        if to.is_int and isinstance(fill_value, int):
            check_fits(fill_value, to, "fill_value")
        return cls._of(*place_on_device(broadcast_constant(to, fill_value, shape), device), requires_grad)

    def _stored(self) -> Self:
        """This constant as a value that is computed into memory."""
        out = self._of(self.uop.clone(), self._device, self.requires_grad)
        return out

    @classmethod
    def const(cls, value: Any, dtype: DTypeLike | None = None) -> Self:
        """The constant `value` as a Tensor of shape (), or of shape (n,) for a tuple of n constants.

        `dtype`: by default that of the Python int, float or bool. Raises DTypeError, OverflowError_.

        >>> Tensor.const(2.5).item()
        2.5
        """
        return cls(value, dtype=dtype)  # type: ignore[call-arg]

    @classmethod
    def zeros(cls, *shape: Any, **kwargs: Any) -> Self:
        """0 everywhere. Keywords: dtype, device, requires_grad.

        >>> Tensor.zeros(2, 2).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
        """
        return cls.full(
            args_of(shape[0], shape[1:]) if shape else (), 0.0, **{"dtype": dtypes.default_float, **kwargs}
        )

    @classmethod
    def ones(cls, *shape: Any, **kwargs: Any) -> Self:
        """1 everywhere. Keywords: dtype, device, requires_grad.

        >>> Tensor.ones(2, 2).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
        """
        return cls.full(
            args_of(shape[0], shape[1:]) if shape else (), 1.0, **{"dtype": dtypes.default_float, **kwargs}
        )

    @classmethod
    def empty(cls, *shape: Any, **kwargs: Any) -> Self:
        """A Tensor whose elements do not matter: zeros. Keywords: dtype, device, requires_grad.

        >>> Tensor.empty(2, 3).shape
        (2, 3)
        """
        return cls.zeros(*shape, **kwargs)

    def full_like(self, fill_value: Any, **kwargs: Any) -> Self:
        """`fill_value` in this Tensor's shape, by default with its dtype and on its device.

        >>> Tensor([1.0, 2.0]).full_like(3).tolist()
        [3.0, 3.0]
        """
        chosen_options = {name: value for name, value in kwargs.items() if value is not None}
        options = {"dtype": self.dtype, "device": self._device, **chosen_options}
        if isinstance(options["device"], tuple) and options["device"] == self._device:
            requires_grad = options.pop("requires_grad", None)
            out = self.full(self.shape, fill_value, **{**options, "device": None})
            sharding = Sharding(self._device, axis_of(self.uop))
            return self._of(out.uop.copy_to(sharding), self._device, requires_grad)
        return self.full(self.shape, fill_value, **options)

    def zeros_like(self, **kwargs: Any) -> Self:
        """0 in this Tensor's shape, by default with its dtype and on its device.

        >>> Tensor([5, 6]).zeros_like().tolist()
        [0, 0]
        """
        return self.full_like(0, **kwargs)

    def ones_like(self, **kwargs: Any) -> Self:
        """1 in this Tensor's shape, by default with its dtype and on its device.

        >>> Tensor([5, 6]).ones_like().tolist()
        [1, 1]
        """
        return self.full_like(1, **kwargs)

    def empty_like(self, **kwargs: Any) -> Self:
        """A Tensor like this one whose elements do not matter.

        >>> Tensor([1, 2]).empty_like().shape
        (2,)
        """
        return self.full_like(0, **kwargs)

    def const_like(self, value: Any) -> Self:
        """The constant `value` in this Tensor's dtype and shape.

        >>> Tensor([1, 2]).const_like(7).tolist()
        [7, 7]
        """
        return self._of(broadcast_constant(self.uop.dtype, value, self.uop.shape), self._device)

    def new_full(self, shape: tuple[int, ...], fill_value: Any) -> Self:
        """`fill_value` in `shape`, with this dtype and on this device.

        >>> Tensor([1, 2]).new_full((2,), 7).tolist()
        [7, 7]
        """
        return type(self).full(shape, fill_value, dtype=self.dtype, device=self.device)

    def new_zeros(self, *shape: Any) -> Self:
        """Zeros of `shape`, with this dtype and on this device.

        >>> Tensor([1, 2]).new_zeros(2).tolist()
        [0, 0]
        """
        return self.new_full(_shape_of(shape), 0)

    def new_ones(self, *shape: Any) -> Self:
        """Ones of `shape`, with this dtype and on this device.

        >>> Tensor([1, 2]).new_ones(2).tolist()
        [1, 1]
        """
        return self.new_full(_shape_of(shape), 1)

    @classmethod
    def arange(
        cls,
        start: Any,
        stop: Any = None,
        step: Any = 1,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """start, start + step, ... up to but not including `stop`; `arange(n)` is 0..n-1. 1-D.

        The dtype is the default int (int64 where that is too small), or the default float when an argument is
        a float. Raises ArgumentError, OverflowError_.

        >>> Tensor.arange(5, 10, 2).tolist()
        [5, 7, 9]
        """
        if stop is None:
            start, stop = 0, start
        start, stop, step = python_number(start), python_number(stop), python_number(step)
        for name, x in (("start", start), ("stop", stop), ("step", step)):
            if not isinstance(x, (int, float, UOp)) and not hasattr(x, "__index__"):
                raise ArgumentError(f"arange: {name}: expected a number, got {x!r}")
        if not isinstance(step, UOp) and step == 0:
            raise ArgumentError(f"arange: expected a step other than 0, got {step}")
        if dtype is None:
            floats = any(isinstance(x, float) for x in (start, stop, step))
            dtype = dtypes.default_float if floats else _int_dtype(start, stop, step)
        to = to_dtype(dtype)
        count: Any
        if any(isinstance(x, UOp) for x in (start, stop, step)):
            if not all(is_size(x) for x in (start, stop, step)):
                raise ArgumentError(f"arange: expected ints with Variables, got {(start, stop, step)}")
            count = larger(canonical(ceildiv(stop - start, step)), 0)
        else:
            span = stop - start
            exact = all(isinstance(x, int) for x in (start, stop, step))
            count = max(ceildiv(span, step) if exact else _ceil(span / step), 0)
            if to.is_int and count:
                for name, x in (("start", start), ("stop", start + (count - 1) * step)):
                    check_fits(int(x), to, f"arange {name}")
        out = UOp(Ops.ARANGE, to if to.is_int else dtypes.int32, (), count)
        if isinstance(step, UOp):
            out = _affine(out.cast(to), step, start)
        elif to.is_int:
            out = _affine(out, int(step), start)
        else:
            out = _affine(out.cast(to), float(step), start)
        return cls._of(*place_on_device(out, device), requires_grad)

    @classmethod
    def linspace(
        cls, start: float, stop: float, steps: int, dtype: DTypeLike | None = None, **kwargs: Any
    ) -> Self:
        """`steps` evenly spaced values from `start` to `stop`, both included. 1-D.

        Raises ArgumentError, DTypeError for bool.

        >>> Tensor.linspace(0, 1, 5).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        start, stop, steps = python_number(start), python_number(stop), python_number(steps)
        if not isinstance(steps, int) or steps < 0:
            raise ArgumentError(f"linspace: expected steps of at least 0, got {steps!r}")
        to = dtypes.default_float if dtype is None else to_dtype(dtype)
        if to.is_bool:
            raise DTypeError("linspace: expected a dtype of numbers, got bool")
        if steps <= 1:
            return cls.full((steps,), start, dtype=to, **kwargs)
        wide = to if to.is_float and to.itemsize >= 4 else dtypes.float32
        ramp = UOp(Ops.ARANGE, dtypes.int32, (), steps).cast(wide)
        out = _affine(ramp, (stop - start) / (steps - 1), start).cast(to)
        uop, home = place_on_device(out, kwargs.get("device"))
        return cls._of(uop, home, kwargs.get("requires_grad"))

    @classmethod
    def eye(
        cls,
        n: int,
        m: int | None = None,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """1 on the main diagonal of an (n, m) matrix, 0 elsewhere; m defaults to n. Raises ShapeError.

        >>> Tensor.eye(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        n, m = check_shape((n, n if m is None else m), "eye")
        to = dtypes.default_float if dtype is None else to_dtype(dtype)
        rows = UOp(Ops.ARANGE, dtypes.int32, (), n).reshape((n, 1)).expand((n, m))
        columns = UOp(Ops.ARANGE, dtypes.int32, (), m).reshape((1, m)).expand((n, m))
        return cls._of(
            *place_on_device(UOp(Ops.CMPEQ, dtypes.bool, (rows, columns)).cast(to), device), requires_grad
        )


def _affine(ramp: UOp, step: Any, start: Any) -> UOp:
    """ramp * step + start."""
    if isinstance(step, UOp):
        out = ramp * broadcast_to(step.cast(ramp.dtype), ramp.shape)
    else:
        out = ramp if step == 1 else ramp * step
    if isinstance(start, UOp):
        return out + broadcast_to(start.cast(out.dtype), out.shape)
    return out if start == 0 else out + start


def _int_dtype(start: Any, stop: Any, step: Any) -> DType:
    """The default int, or int64 for a range of ints that does not fit it."""
    if any(isinstance(x, UOp) for x in (start, stop, step)):
        return dtypes.default_int
    values = range(start, stop, step)
    fits_default = not values or all(
        dtypes.default_int.min <= values[i] <= dtypes.default_int.max for i in (0, -1)
    )
    return dtypes.default_int if fits_default else dtypes.int64


def _ceil(x: float) -> int:
    return -int(-x // 1)


def _shape_of(shape: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
