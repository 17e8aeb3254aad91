"""Compiled kernels in the caches: as records in memory, and as bytes on disk."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

from polygrad.codegen.lower.bind_workgroups import subgroup_of, workgroup_of
from polygrad.codegen.lower.passes import LoweringContext, signature
from polygrad.codegen.opts.opt import parse_opts, render_opts
from polygrad.codegen.target import Target
from polygrad.engine.cache import DiskCache
from polygrad.engine.devices import Backend
from polygrad.helpers import THREAD_VARIABLES
from polygrad.runtime.grid import GridSize, as_tuples
from polygrad.runtime.program import Kernel
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Built:
    """A compiled kernel. `slots`: the PARAMs of its AST that it still has; simplification may have dropped
    some. `local`: the bytes of each scratch buffer of its own. `context`: the options of its lowering.
    `grid`: of workgroups, on a device that has them."""

    kernel: Kernel
    slots: tuple[int, ...]
    local: tuple[int, ...]
    context: LoweringContext
    grid: tuple[GridSize, GridSize, GridSize] | None = None

    def to_bytes(self) -> bytes:
        """u32 length (little-endian) | JSON | the kernel's code."""
        k = self.kernel
        opts = None if self.context.opts is None else render_opts(self.context.opts)
        of_kernel = [
            k.name,
            k.n_buffers,
            k.variables,
            k.language,
            k.writes,
            k.parallel,
            k.workgroup,
            k.subgroup,
        ]
        head = json.dumps([*of_kernel, self.slots, self.local, opts, self.grid]).encode()
        return _LENGTH.pack(len(head)) + head + k.code

    @staticmethod
    def from_bytes(data: bytes, target: Target, optimized: bool) -> Built:
        """The kernel for `target` that `to_bytes` wrote. The cache has checked that the bytes are
        undamaged."""
        (length,) = _LENGTH.unpack_from(data)
        start = _LENGTH.size + length
        fields = json.loads(data[_LENGTH.size : start])
        *of_kernel, slots, local, opts, grid = fields
        name, n_buffers, variables, language, writes, parallel, workgroup, subgroup = of_kernel
        kernel = Kernel(
            name,
            data[start:],
            n_buffers,
            tuple(variables),
            language=language,
            writes=tuple(writes),
            parallel=parallel,
            workgroup=None if workgroup is None else tuple(workgroup),
            subgroup=subgroup,
        )
        context = LoweringContext(target, optimized, None if opts is None else parse_opts(opts))
        sizes = None if grid is None else tuple(map(as_tuples, grid))
        return Built(kernel, tuple(slots), tuple(local), context, sizes)


def kernel_of(name: str, linear: list[UOp], params: list[UOp], backend: Backend, code: bytes = b"") -> Kernel:
    """The Kernel of a Program for a linear kernel."""
    variables = tuple(sorted(n.arg.name for n in linear if n.op is Ops.DEFINE_VAR))
    limits = backend.target.workgroups
    return Kernel(
        name,
        code,
        len(params),
        variables,
        language=backend.language,
        writes=_written_slots(linear, params),
        parallel=not THREAD_VARIABLES.isdisjoint(variables),
        workgroup=workgroup_of(linear) if limits else None,
        subgroup=subgroup_of(linear, limits) if limits else 0,
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


def built_key(ast: UOp, *how: object) -> str:
    """The key of an AST's kernel in the disk cache. `how`: everything else that its code depends on, apart
    from polygrad's own code."""
    return DiskCache.key(f"kernel {how!r}", signature(ast.toposort()))
