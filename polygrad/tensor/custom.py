"""`Tensor.custom_kernel`: kernels written by hand in a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from polygrad.engine.devices import Device
from polygrad.errors import ArgumentError, DeviceError, GradientError, ShapeError
from polygrad.helpers import prod
from polygrad.runtime.buffer import Buffer
from polygrad.schedule.custom_kernel import custom_kernels
from polygrad.tensor.core.base import TensorBase
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


class CustomKernelMixin(TensorBase):
    """Kernels written by hand."""

    __slots__ = ()

    def custom_kernel(
        self, *lst: Self, fxn: Callable[..., UOp], grad_fxn: Callable[..., Any] | None = None
    ) -> list[Self]:
        """This Tensor and `lst` after a kernel written by hand has run on them; they themselves stay as they
        are.

        `fxn` is called once, with a placeholder UOp for each Tensor, and returns the kernel: a SINK of stores
        in their loops. Elements are `x[i, j]`, loops `UOp.range(size, axis)` with axis numbers of their own,
        sums over a loop `value.reduce(k)`; placeholders may be reshaped, permuted, padded and cut. Indices
        must be known to be in range (`clip` those that are loaded), and each round of the loops writes
        another element. What is read of a Tensor that is written to is what it held before. The optimiser
        tiles, vectorises and threads the kernel as any other, on every device.

        `grad_fxn(gradient, call)`: of the gradient of the only Tensor that is written to, the gradients of
        all Tensors, which are `call.src[1:]`: UOps or Tensors of their shapes, or None. Without it a gradient
        raises GradientError.

        Raises ArgumentError for what is no kernel, ShapeError for symbolic sizes, DeviceError for Tensors
        that are not all on one device.

        >>> def double(out, x):
        ...     i = UOp.range(out.shape[0], 0)
        ...     return out[i].store(x[i] * 2).end(i).sink()
        >>> Tensor.empty(3).custom_kernel(Tensor([1.0, 2.0, 3.0]), fxn=double)[0].tolist()
        [2.0, 4.0, 6.0]
        """
        tensors = [self, *lst]
        for t in tensors:
            if not all(isinstance(n, int) for n in t.shape) or 0 in t.shape:
                raise ShapeError(f"custom_kernel: expected sizes that are ints of at least 1, got {t.shape}")
            if isinstance(t._device, tuple):
                raise DeviceError(
                    f"custom_kernel: expected Tensors on one device, got one on {', '.join(t._device)}: "
                    "gather it with to()"
                )
        joined = self._join(self.uop, *lst)  # checks the devices
        home = joined._device or Device.DEFAULT
        kernels = custom_kernels(fxn, [(t.shape, t.dtype) for t in tensors])
        outputs = dict.fromkeys(k.output for k in kernels)
        if grad_fxn is not None and len(outputs) != 1:
            raise ArgumentError(
                f"custom_kernel: expected one Tensor that is written to with grad_fxn, got {len(outputs)}"
            )
        memory: dict[int, UOp] = {}
        for kernel in kernels:
            target = tensors[kernel.output]
            if kernel.output not in memory:
                buffer = Buffer(Device[home], prod(target.shape), target.dtype)
                memory[kernel.output] = UOp.buffer_of(buffer, target.dtype)
                if not kernel.is_whole:  # the rest is what it was
                    memory[kernel.output] = memory[kernel.output].assign(target.uop.flatten())
            before = memory[kernel.output]
            operands = [_stored(tensors[i].uop) for i in kernel.reads]
            write = UOp(Ops.ASSIGN, target.dtype, (before, *operands), kernel.ast)
            memory[kernel.output] = UOp(Ops.AFTER, target.dtype, (before, write))

        def rule(g: UOp, node: UOp) -> Any:
            if grad_fxn is None:
                raise GradientError("custom_kernel: it has no gradient: give grad_fxn, or detach()")
            call = UOp(Ops.SINK, src=(UOp.sink(), *node.src[1:]))
            given = grad_fxn(g, call)
            given = given if isinstance(given, (tuple, list)) else (given,)
            if len(given) != len(tensors):
                raise GradientError(
                    f"custom_kernel: expected {len(tensors)} gradients, one for each Tensor, got {len(given)}"
                )
            return [_checked(x, t) for x, t in zip(given, node.src[1:], strict=True)]

        results = list(tensors)
        for i in outputs:
            value = memory[i].reshape(tensors[i].shape)
            node = UOp(Ops.NOOP, value.dtype, (value, *[t.uop for t in tensors]), rule)
            results[i] = self._join(node, *lst)
            results[i]._device = home
        return results


def _stored(node: UOp) -> UOp:
    """A node whose elements lie in memory in order."""
    base = node.base
    return base if base.op in GroupOp.Memory else node.clone()


def _checked(gradient: Any, of: UOp) -> UOp | None:
    """What grad_fxn gives for an operand. Raises GradientError for another shape or dtype."""
    if gradient is None:
        return None
    node = gradient.uop if isinstance(gradient, TensorBase) else gradient
    if not isinstance(node, UOp) or node.shape != of.shape or node.dtype is not of.dtype:
        got = f"{node.shape} {node.dtype}" if isinstance(node, UOp) else type(gradient).__name__
        raise GradientError(f"custom_kernel: expected a gradient of {of.shape} {of.dtype}, got {got}")
    return node
