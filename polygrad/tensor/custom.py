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
        """This Tensor and `lst` after a kernel written by hand has run on them. The operands themselves do
        not change.

        `fxn` is called once, with a placeholder UOp for each Tensor, and returns the kernel: a SINK of stores
        in their loops. Elements are `x[i, j]`; loops are `UOp.range(size, axis)` with distinct axis numbers;
        sums over a loop are `value.reduce(k)`. Placeholders may be reshaped, permuted, padded and shrunk. The
        bounds of indices must prove that they are in range (`clip` those that are loaded), and each iteration
        of the loops must write another element. Reads of a Tensor that is written to give its old contents.
        The optimiser tiles, vectorises and threads the kernel like any other, on every device.

        `grad_fxn(gradient, call)` gets the gradient of the only Tensor that is written to. It returns the
        gradients of all Tensors, `call.src[1:]`: UOps or Tensors of their shapes, or None. Without it,
        differentiation raises GradientError.

        Raises ArgumentError if `fxn` returns no valid kernel, ShapeError for symbolic sizes, DeviceError for
        Tensors that are not all on one device.

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
        joint = self._join(self.uop, *lst)  # checks the devices
        home = joint._device or Device.DEFAULT
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
                if not kernel.is_whole:  # the other elements keep their values
                    memory[kernel.output] = memory[kernel.output].assign(target.uop.flatten())
            before = memory[kernel.output]
            operands = [_in_memory(tensors[i].uop) for i in kernel.reads]
            write = UOp(Ops.ASSIGN, target.dtype, (before, *operands), kernel.ast)
            memory[kernel.output] = UOp(Ops.AFTER, target.dtype, (before, write))

        def rule(g: UOp, node: UOp) -> Any:
            if grad_fxn is None:
                raise GradientError("custom_kernel: it has no gradient: give grad_fxn, or detach()")
            call = UOp(Ops.SINK, src=(UOp.sink(), *node.src[1:]))
            gradients = grad_fxn(g, call)
            gradients = gradients if isinstance(gradients, (tuple, list)) else (gradients,)
            if len(gradients) != len(tensors):
                raise GradientError(
                    f"custom_kernel: expected {len(tensors)} gradients, one for each Tensor, got "
                    f"{len(gradients)}"
                )
            return [_check_gradient(x, t) for x, t in zip(gradients, node.src[1:], strict=True)]

        results = list(tensors)
        for i in outputs:
            value = memory[i].reshape(tensors[i].shape)
            node = UOp(Ops.NOOP, value.dtype, (value, *[t.uop for t in tensors]), rule)
            results[i] = self._join(node, *lst)
            results[i]._device = home
        return results


def _in_memory(node: UOp) -> UOp:
    """The memory of a node, if its elements lie there in order; else a copy."""
    base = node.base
    return base if base.op in GroupOp.Memory else node.clone()


def _check_gradient(gradient: Any, of: UOp) -> UOp | None:
    """The node of a gradient that grad_fxn returned. Raises GradientError if the shape or dtype differs."""
    if gradient is None:
        return None
    node = gradient.uop if isinstance(gradient, TensorBase) else gradient
    if not isinstance(node, UOp) or node.shape != of.shape or node.dtype is not of.dtype:
        actual = f"{node.shape} {node.dtype}" if isinstance(node, UOp) else type(gradient).__name__
        raise GradientError(f"custom_kernel: expected a gradient of {of.shape} {of.dtype}, got {actual}")
    return node
