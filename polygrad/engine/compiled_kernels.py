"""Compiled kernels in the caches: as records in memory, and as bytes on disk."""

from __future__ import annotations

import dataclasses
import json
import struct
from dataclasses import dataclass, replace

from polygrad.codegen.lower.passes import LoweringContext, kernel_name, parameters, signature
from polygrad.codegen.lower.workgroup_dimensions import subgroup_of, workgroup_of
from polygrad.codegen.opts.opt import parse_opts, render_opts
from polygrad.codegen.target import Target
from polygrad.engine.cache import DiskCache
from polygrad.engine.launch_grid import launch_grid
from polygrad.helpers import THREAD_VARIABLES
from polygrad.runtime.grid import Grid, as_tuples
from polygrad.runtime.program import Kernel
from polygrad.uop.args import AddrSpace
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class KernelArtefact:
    """A compiled kernel. `slots`: the PARAMs of its AST that it still has; simplification may have dropped
    some. `local`: the bytes of each scratch buffer of its own. `context`: the options of its lowering.
    `grid`: of workgroups, on a device that has them. `key`: of its entry on disk, if it has one."""

    kernel: Kernel
    slots: tuple[int, ...]
    local: tuple[int, ...]
    context: LoweringContext
    grid: Grid | None = None
    key: str = ""

    def to_bytes(self) -> bytes:
        """u32 length (little-endian) | JSON | the kernel's code."""
        of_kernel = {f.name: getattr(self.kernel, f.name) for f in dataclasses.fields(Kernel)}
        code = of_kernel.pop("code")
        opts = None if self.context.opts is None else render_opts(self.context.opts)
        head = json.dumps([of_kernel, self.slots, self.local, opts, self.grid]).encode()
        return _LENGTH.pack(len(head)) + head + code

    @staticmethod
    def from_bytes(data: bytes, target: Target, optimized: bool, key: str = "") -> KernelArtefact:
        """The kernel for `target` that `to_bytes` wrote, from the entry `key`. The cache has checked that the
        bytes are undamaged."""
        (length,) = _LENGTH.unpack_from(data)
        start = _LENGTH.size + length
        of_kernel, slots, local, opts, grid = json.loads(data[_LENGTH.size : start])
        kernel = Kernel(code=data[start:], **{name: as_tuples(value) for name, value in of_kernel.items()})
        context = LoweringContext(target, optimized, None if opts is None else parse_opts(opts))
        return KernelArtefact(kernel, tuple(slots), tuple(local), context, as_tuples(grid), key)

    def with_code(self, code: bytes, key: str = "") -> KernelArtefact:
        """The same kernel with its code, which the entry `key` has."""
        return replace(self, kernel=replace(self.kernel, code=code), key=key)


def describe_kernel(linear: list[UOp], context: LoweringContext, language: str) -> KernelArtefact:
    """A linear kernel that `context` lowered, whose code is to be in `language`, without its code."""
    params = parameters(linear)
    buffers = [n for n in params if n.arg.space is AddrSpace.GLOBAL]
    kernel_memory = params[len(buffers) :]
    variables = tuple(sorted(n.arg.name for n in linear if n.op is Ops.DEFINE_VAR))
    limits = context.target.workgroups
    kernel = Kernel(
        kernel_name(linear, signature(linear)),
        b"",
        len(params),
        variables,
        language=language,
        writes=_written_slots(linear, params),
        parallel=not THREAD_VARIABLES.isdisjoint(variables),
        workgroup=workgroup_of(linear) if limits else None,
        subgroup=subgroup_of(linear, limits) if limits else 0,
    )
    return KernelArtefact(
        kernel,
        tuple(n.arg.slot for n in buffers),
        tuple(n.arg.size * n.dtype.itemsize for n in kernel_memory),
        context,
        launch_grid(linear) if limits else None,
    )


def _written_slots(linear: list[UOp], params: list[UOp]) -> tuple[int, ...]:
    """The positions of the PARAMs that a linear kernel stores to."""
    targets = set()
    for node in linear:
        if node.op is Ops.STORE:
            pointer = node.src[0]
            while pointer.src:  # INDEX, and AFTER what was stored there before
                pointer = pointer.src[0]
            targets.add(pointer)
    return tuple(i for i, param in enumerate(params) if param in targets)


def artefact_key(ast: UOp, *how: object) -> str:
    """The key of an AST's kernel in the disk cache. `how`: everything else that its code depends on, apart
    from polygrad's own code."""
    return DiskCache.key(f"kernel {how!r}", signature(ast.toposort()))
