"""The base of `Tensor`: its slots, how results are made, promotion and broadcasting.

A Tensor is one lazy node (`uop`), its gradient, and whether gradients flow to it. Nothing here computes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias, cast

from polygrad.dtype import DType, dtypes, promote, promote_float, to_dtype
from polygrad.engine.devices import Device
from polygrad.errors import (
    ArgumentError,
    AxisError,
    DeviceError,
    DTypeError,
    GradientError,
    OverflowError_,
    ShapeError,
)
from polygrad.helpers import prod
from polygrad.monitor import synchronized
from polygrad.tensor.core.aliasing import Storage, cut_gradient, is_view_of_memory, storage_of
from polygrad.tensor.core.modes import TensorType, modes
from polygrad.tensor.core.registry import _alive, _forget, _serial, changes
from polygrad.uop.args import Leaf
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.shapes import Shape, Sint, broadcast_shape, sint_max
from polygrad.uop.sizes import canonical

_new = object.__new__
_ref = weakref.ref
_SCALARS = (bool, int, float)
_MAY_BE_VIEW = GroupOp.Movement | GroupOp.Memory | {Ops.DETACH, Ops.BITCAST}


DTypeLike: TypeAlias = DType | str  # a dtype, or its name


class SupportsArray(Protocol):
    """A numpy array or scalar, or an object that converts to one."""

    def __array__(self) -> Any: ...


def broadcast_to(uop: UOp, shape: Shape) -> UOp:
    """`uop` broadcast to `shape`, axes aligned at the right. The caller has checked that it fits."""
    old_shape = uop.shape
    if old_shape == shape:
        return uop
    if len(old_shape) < len(shape):
        uop = uop.reshape((1,) * (len(shape) - len(old_shape)) + old_shape)
    return uop.expand(shape)


def broadcast_constant(dtype: DType, value: Any, shape: Shape) -> UOp:
    """The constant `value` in every element of `shape`."""
    out = UOp.const(dtype, value)
    return out.reshape((1,) * len(shape)).expand(shape) if shape else out


def check_fits(value: int, dtype: DType, subject: str) -> None:
    """Raises OverflowError_ when the integer `value` is outside `dtype`."""
    if not dtype.min <= value <= dtype.max:
        raise OverflowError_(
            f"{subject}: expected an integer in {dtype.min}..{dtype.max} ({dtype}), got {value}"
        )


def declared_dtype(size: UOp) -> DType | None:
    """The dtype that was declared for the Variables of a symbolic integer as operands of Tensors, or None."""
    out: DType | None = None
    for node in size.toposort():
        if node.op is Ops.DEFINE_VAR and node.arg.dtype:
            dtype = to_dtype(node.arg.dtype)
            out = dtype if out is None else promote(out, dtype)
    return out


class BufferRole(NamedTuple):
    """The role of a Tensor that belongs to a model and is not trained. `persistent`: it is saved with the
    model. `keeps_dtype`: it is part of a format, and does not change when the model is converted to another
    dtype."""

    persistent: bool
    keeps_dtype: bool = False


class TensorBase(metaclass=TensorType):
    """The slots of a Tensor, and what its mixins share."""

    __slots__ = (
        "__weakref__",
        "_derived",
        "_device",
        "_hooks",
        "_requires_grad",
        "_role",
        "_storage",
        "grad",
        "uop",
    )

    uop: UOp
    grad: Self | None
    _requires_grad: bool | None
    _derived: bool  # computed from a tensor that requires a gradient
    _hooks: list[Callable[[UOp], UOp]] | None  # those of a leaf
    _role: Leaf | BufferRole | None  # the mark of its nodes while it is a leaf; a buffer of a model
    _device: Any  # its name, or a tuple of several; None: a constant, which is computed on any device
    _storage: Storage | None  # what it shares with its views; None: not determined yet

    # the metaclass has the property for the class, this is the property of instances
    training: ClassVar[bool] = cast(bool, property(lambda self: type(self).training))

    # --- results

    @classmethod
    def _of(cls, uop: UOp, device: str | None = None, requires_grad: bool | None = None) -> Self:
        """A new Tensor over `uop`, derived from no other."""
        out = _new(cls)
        out.uop, out._device, out._requires_grad, out._derived, out.grad = (
            uop,
            device,
            requires_grad,
            False,
            None,
        )
        out._storage = out._role = out._hooks = None
        _alive[_ref(out, _forget)] = _serial()
        if requires_grad:
            out._mark_leaf()
        return out

    def _with(self, uop: UOp) -> Self:
        """A result computed from this Tensor alone. It is a value, not a view, even if the elements are the
        same."""
        if uop.op not in _MAY_BE_VIEW:
            return self._result(uop)
        if is_view_of_memory(self, uop):
            return self._result(UOp(Ops.NOOP, uop.dtype, (uop,)))
        out = self._result(uop)
        Storage(uop.base).add(out)  # so that results made from it need not search for memory again
        return out

    def _compute_once(self) -> Self:
        """This value stored in memory of its own, so that it is computed once for all its uses."""
        return self._with(self.uop.contiguous())

    def _view_of(self, uop: UOp) -> Self:
        """A view of this Tensor: a write to either is seen in both."""
        out = self._result(uop)
        (self._storage or storage_of(self)).add(out)
        return out

    def _result(self, uop: UOp) -> Self:
        out = _new(type(self))
        needs = self._requires_grad
        if not modes.grad_enabled:
            if needs is not False:
                needs, uop = False, cut_gradient(uop)
        elif needs and not uop.dtype.is_float:
            needs = False
        out.uop, out._device, out.grad = uop, self._device, None
        out._requires_grad = needs
        out._derived = needs is True
        out._storage = out._role = out._hooks = None
        _alive[_ref(out, _forget)] = _serial()
        return out

    def _join(self, uop: UOp, *others: TensorBase) -> Self:
        """A result computed from this Tensor and `others`.

        Raises DeviceError when they lie on different devices.
        """
        out = _new(type(self))
        device, needs = self._device, self._requires_grad
        for x in others:
            if x._device is not device and x._device != device:
                if device is None:
                    device = x._device
                elif x._device is not None:
                    raise DeviceError(
                        f"operands: expected one device, got {device} and {x._device}: use .to()"
                    )
            if needs is not True and x._requires_grad is not needs:
                needs = True if x._requires_grad else None
        if not modes.grad_enabled:
            if needs is not False:
                needs, uop = False, cut_gradient(uop)
        elif needs and not uop.dtype.is_float:
            needs = False
        out.uop, out._device, out.grad, out._requires_grad, out._derived = (
            uop,
            device,
            None,
            needs,
            needs is True,
        )
        out._storage = out._role = out._hooks = None
        _alive[_ref(out, _forget)] = _serial()
        return out

    def _with_backward(self, inputs: Sequence[Self], backward: Callable[..., Any]) -> Self:
        """This value with a custom gradient: `backward(gradient, value, *inputs)`, a function of Tensors,
        returns the gradient of each input, or None.
        """
        make, home, devices = self._of, self._device, [x._device for x in inputs]

        def rule(g: UOp, node: UOp) -> list[UOp | None]:
            sources = [make(s, d) for s, d in zip(node.src[1:], devices, strict=True)]
            gradients = backward(make(g, home), make(node, home), *sources)
            gradients = gradients if isinstance(gradients, (tuple, list)) else (gradients,)
            if len(gradients) != len(sources):
                raise GradientError(
                    f"backward: expected {len(sources)} gradients, one for each input, got {len(gradients)}"
                )
            return [
                None if x is None else _gradient_of(x, s) for x, s in zip(gradients, sources, strict=True)
            ]

        return self._join(UOp(Ops.NOOP, self.dtype, (self.uop, *[x.uop for x in inputs]), rule), *inputs)

    def _detached(self) -> Self:
        out = self._view_of(self.uop.detach())
        out._requires_grad, out._derived = False, False
        return out

    # --- leaves

    @property
    def requires_grad(self) -> bool | None:
        """Whether gradients flow to this Tensor: True, False, or None if it was not set (see `backward`).

        Setting it affects later computations. Raises GradientError for False on a Tensor that is computed
        from others that require a gradient: use `detach()`.

        >>> w = Tensor([1.0], requires_grad=True)
        >>> w.requires_grad, (w * 2).requires_grad, w.detach().requires_grad
        (True, True, False)
        """
        return self._requires_grad

    @requires_grad.setter
    @synchronized
    def requires_grad(self, value: bool | None) -> None:
        if self._derived:
            if not value:
                raise GradientError(
                    f"requires_grad: a Tensor of shape {self.shape} is computed from others that require a "
                    "gradient: use detach(), or compute it under Tensor.no_grad()"
                )
            return
        if value:
            self._mark_leaf()
        elif self._is_marked():
            self.uop = self.uop.src[0]
            changes.count += 1
        self._requires_grad = value

    def _is_marked(self) -> bool:
        role = self._role
        return role is not None and self.uop.op is Ops.DETACH and self.uop.arg is role

    @synchronized
    def _mark_leaf(self) -> None:
        """Mark this Tensor's node as a leaf for later computations, whatever is written to it."""
        if not self.uop.dtype.is_float or self._is_marked():
            return
        if isinstance(self._role, BufferRole):
            raise GradientError(
                f"requires_grad: a Tensor of shape {self.shape} is a buffer of a model, which is not "
                "trained: use a clone() of it"
            )
        if self._role is None:
            self._role = Leaf(_ref(self))
        self.uop = self.uop.detach(self._role)
        changes.count += 1

    def _set_uop(self, uop: UOp) -> None:
        """Become the value `uop`; a leaf stays a leaf."""
        self.uop = uop
        if self._requires_grad and not self._derived:
            self._mark_leaf()

    # --- properties

    @property
    def dtype(self) -> DType:
        """The element type; equal to its name (`t.dtype == "float32"`).

        >>> Tensor([1.0]).dtype == "float32"
        True
        """
        return self.uop.dtype

    @property
    def shape(self) -> Shape:
        """The sizes of the axes: ints, or symbolic integers.

        >>> Tensor([[1, 2, 3]]).shape
        (1, 3)
        """
        return self.uop.shape

    @property
    def ndim(self) -> int:
        """The number of axes.

        >>> Tensor([[1, 2]]).ndim
        2
        """
        return len(self.uop.shape)

    def dim(self) -> int:
        """How many axes there are: `ndim`.

        >>> Tensor.zeros(2, 3).dim()
        2
        """
        return self.ndim

    @property
    def device(self) -> Any:
        """The name of the device that holds, or will hold, the elements; for a sharded Tensor, all their
        names.

        >>> Tensor([1.0], device="INTERP").device
        'INTERP'
        """
        return self._device or Device.DEFAULT

    def numel(self) -> Sint:
        """The number of elements.

        >>> Tensor([[1, 2], [3, 4]]).numel()
        4
        """
        return canonical(prod(self.uop.shape))

    nelement = numel

    @property
    def max_shape(self) -> tuple[int, ...]:
        """The shape with every symbolic size replaced by its greatest value.

        >>> Tensor.zeros(2, 3).max_shape
        (2, 3)
        """
        return tuple([sint_max(n) for n in self.uop.shape])

    def max_numel(self) -> int:
        """The number of elements of `max_shape`.

        >>> Tensor.zeros(2, 3).max_numel()
        6
        """
        return int(prod(self.max_shape))

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of axis `dim`. Raises AxisError.

        >>> Tensor.zeros(2, 3).size(), Tensor.zeros(2, 3).size(1)
        ((2, 3), 3)
        """
        return self.shape if dim is None else self.shape[self._axis(dim)]

    def element_size(self) -> int:
        """Bytes per element.

        >>> Tensor([1.0]).element_size()
        4
        """
        return self.dtype.itemsize

    def nbytes(self) -> Sint:
        """Bytes of all elements.

        >>> Tensor([1.0, 2.0]).nbytes()
        8
        """
        return self.numel() * self.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Whether the dtype is a float.

        >>> Tensor([1.0]).is_floating_point()
        True
        """
        return self.dtype.is_float

    def ufix(self, x: TensorLike) -> Self:
        """`x` as a Tensor: a Python number in the dtype that this Tensor and it promote to, of shape ().

        >>> Tensor([1.5]).ufix(2).dtype.name
        'float32'
        """
        return self._tensor(x)

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("len(): expected a tensor with axes, got shape ()")
        return int(self.shape[0])

    __hash__ = object.__hash__

    # --- arguments

    def _axis(self, axis: Any, extra: int = 0) -> int:
        """`axis` counted from 0. `extra`: the number of axes about to be added. Raises AxisError."""
        n = len(self.uop.shape) + extra
        if axis.__class__ is int and -n <= axis < n:
            return axis if axis >= 0 else axis + n
        if isinstance(axis, TensorBase) or not hasattr(axis, "__index__"):
            raise ArgumentError(f"axis: expected an int, got {axis!r}")
        axis = axis.__index__()  # numpy's integers, too
        if not -max(n, 1) <= axis < max(n, 1):
            raise AxisError(
                f"axis: expected {-max(n, 1)} to {max(n, 1) - 1} for shape {self.shape}, got {axis}"
            )
        return axis + n if axis < 0 and n else axis

    def _axes(self, axis: int | Sequence[int] | None) -> tuple[int, ...]:
        """Axes counted from 0; None means all. Raises AxisError, and ArgumentError for a repeated one."""
        if axis is None:
            return tuple(range(len(self.uop.shape)))
        if axis.__class__ is int and (n := len(self.uop.shape)) and -n <= axis < n:
            return (axis if axis >= 0 else axis + n,)
        if hasattr(axis, "__iter__"):
            out = tuple([self._axis(a) for a in axis])
            if len(set(out)) != len(out):
                raise ArgumentError(f"axis: expected distinct axes, got {tuple(axis)}")
        elif hasattr(axis, "__index__"):
            out = (self._axis(axis),)
        else:
            raise ArgumentError(f"axis: expected an int, a sequence of ints or None, got {axis!r}")
        return out if self.uop.shape else ()

    # --- two operands

    def _scalar(self, x: Any) -> DType:
        """The dtype that this Tensor and the Python scalar `x` promote to."""
        dtype = self.uop.dtype
        if dtype.is_float or x is True or x is False:
            return dtype
        if isinstance(x, float):
            return dtypes.default_float
        if dtype.is_bool:
            dtype = dtypes.default_int
        check_fits(x, dtype, f"operand of a {dtype} tensor")
        return dtype

    def _symbol(self, x: UOp) -> DType:
        """The dtype that this Tensor and a symbolic number promote to: as for a Python number of its kind.

        Raises OverflowError_ when a symbolic integer may be outside an integer dtype.
        """
        if x.dtype.is_float:
            return self._scalar(0.0)
        if (declared := declared_dtype(x)) is not None:
            return promote(self.uop.dtype, declared)
        if x.dtype is not dtypes.index:
            return promote(self.uop.dtype, x.dtype)
        self._scalar(x.vmin)
        return self._scalar(x.vmax)

    def _constant(self, x: Any) -> UOp:
        """The Python scalar `x` as a node of this Tensor's shape and the dtype that both promote to."""
        return broadcast_constant(self._scalar(x), x, self.uop.shape)

    def _pair(self, x: TensorLike, reverse: bool = False) -> tuple[UOp, UOp]:
        """This Tensor and `x` as nodes of one dtype and shape, in order, swapped when `reverse`.

        Raises ShapeError, DTypeError, OverflowError_.
        """
        a = self.uop
        if isinstance(x, TensorBase):
            b = x.uop
            if a.dtype is not b.dtype:
                dtype = promote(a.dtype, b.dtype)
                a, b = a.cast(dtype), b.cast(dtype)
            if a.shape != b.shape:
                shape = broadcast_shape((a.shape, b.shape))
                a, b = broadcast_to(a, shape), broadcast_to(b, shape)
        elif isinstance(x, _SCALARS):
            dtype = self._scalar(x)
            a, b = a.cast(dtype), broadcast_constant(dtype, x, a.shape)
        elif isinstance(x, UOp) and not x.shape:
            dtype = self._symbol(x)
            a, b = a.cast(dtype), broadcast_to(x.cast(dtype), a.shape)
        else:
            return self._pair(self._lift(x), reverse)
        return (b, a) if reverse else (a, b)

    def _with_constant(self, x: TensorLike) -> tuple[UOp, UOp]:
        """`_pair`, except that a Python scalar stays a CONST of shape (), which broadcasts to any shape."""
        if not isinstance(x, _SCALARS):
            return self._pair(x)
        a, dtype = self.uop, self._scalar(x)
        return a if a.dtype is dtype else a.cast(dtype), UOp.const(dtype, x)

    def _lift(self, x: TensorLike) -> Self:
        """`x` (a list, an array, a numpy scalar) as a Tensor on this Tensor's device. Raises DTypeError."""
        if x is None:
            raise DTypeError("operand: expected a Tensor, a number or an array, got None")
        try:
            return type(self)(x, device=self._device)  # type: ignore[call-arg]
        except DTypeError:
            raise DTypeError(
                f"operand: expected a Tensor, a number or an array, got {type(x).__name__}"
            ) from None

    def _tensor(self, x: TensorLike) -> Self:
        """`x` as a Tensor; a Python number in the dtype that this Tensor and it promote to, of shape ()."""
        if isinstance(x, TensorBase):
            return cast(Self, x)
        if isinstance(x, _SCALARS):
            return self._of(UOp.const(self._scalar(x), x), self._device)
        return self._lift(x)

    def _binary(self, op: Ops, x: TensorLike, reverse: bool = False) -> Self:
        """`op` of this Tensor and `x`, promoted and broadcast."""
        a = self.uop
        if isinstance(x, TensorBase):
            b = x.uop
            if a.dtype is not b.dtype or a.shape != b.shape:
                a, b = self._pair(x)
            if reverse:
                a, b = b, a
            return self._join(UOp(op, dtypes.bool if op in GroupOp.Comparison else a.dtype, (a, b)), x)
        if not isinstance(x, (bool, int, float, UOp)):
            return self._binary(op, self._lift(x), reverse)
        a, b = self._with_constant(x)
        if reverse:
            a, b = b, a
        return self._with(UOp(op, dtypes.bool if op in GroupOp.Comparison else a.dtype, (a, b)))

    def _unary(self, op: Ops) -> Self:
        """A float op of this Tensor, whose integers become the default float first."""
        a = self._as_float()
        return self._with(UOp(op, a.dtype, (a,)))

    def _as_float(self) -> UOp:
        a = self.uop
        return a.cast(promote_float(a.dtype))

    def _of_pair(self, uop: UOp, x: Any) -> Self:
        return self._join(uop, x) if isinstance(x, TensorBase) else self._with(uop)

    def _in_floats(self) -> Self:
        return self if self.dtype.is_float else self._with(self._as_float())

    def _need_int(self, what: str) -> None:
        if not (self.dtype.is_int or self.dtype.is_bool):
            raise DTypeError(f"{what}: expected an integer or bool tensor, got {self.dtype}")

    def _need_float(self, what: str) -> None:
        if not self.dtype.is_float:
            raise DTypeError(f"{what}: expected a float tensor, got {self.dtype}: use .float()")


def is_operand(x: Any) -> bool:
    """Whether `_pair` takes `x` as it is."""
    return isinstance(x, (TensorBase, int, float, UOp))


def _gradient_of(x: TensorBase, source: TensorBase) -> UOp | None:
    """A gradient that a user's function gave for `source`. Raises GradientError, ShapeError."""
    if not source.dtype.is_float:
        return None
    if not isinstance(x, TensorBase):
        raise GradientError(f"backward: expected Tensors or None, got a {type(x).__name__}")
    if x.shape != source.shape:
        raise ShapeError(f"backward: expected a gradient of shape {source.shape}, got {x.shape}")
    return x.uop.cast(source.dtype)


# Operands: a Tensor, a Python number, a symbolic one (a Variable), lists, an array.
TensorLike: TypeAlias = TensorBase | UOp | bool | int | float | Sequence[Any] | SupportsArray
