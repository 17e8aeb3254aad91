"""`Target`: what code generation may ask of a device. A frozen record; nothing below it is ever asked."""

from __future__ import annotations

from dataclasses import dataclass

from polygrad.dtype import DType
from polygrad.uop.args import Dot
from polygrad.uop.tensor_cores import TensorCore


@dataclass(frozen=True)
class Workgroups:
    """What a machine that runs a grid of workgroups has.

    `invocations`: the most in a workgroup; `sizes`: along each dimension. `count`: the most workgroups along
    a dimension of the grid. `shared_bytes`: memory of a workgroup. `subgroup`: how many invocations run in
    step (0: not known): those that follow each other along x, then y, then z. `shuffle_bytes`: the most that
    a number has which they exchange in registers (0: they do not). `software`: a processor does a GPU's work;
    memory of a workgroup is no nearer than buffers then, and a barrier takes longer than most loops.
    `copies`: memory of a workgroup is filled from buffers while its invocations compute.
    """

    invocations: int = 256
    sizes: tuple[int, int, int] = (256, 256, 64)
    count: int = 65_535
    shared_bytes: int = 16 << 10
    subgroup: int = 0
    shuffle_bytes: int = 0
    software: bool = False
    copies: bool = False

    @property
    def key(self) -> str:
        """A string that names these limits."""
        copies = "-copies" if self.copies else ""
        sizes = "x".join(map(str, self.sizes))
        software = "-software" if self.software else ""
        subgroup = f"{self.subgroup}x{self.shuffle_bytes}"
        return f"wg{self.invocations}-{sizes}-{self.count}-{self.shared_bytes}-{subgroup}{software}{copies}"


@dataclass(frozen=True)
class Target:
    """Capabilities of one device.

    `simd_bytes`: the width of a vector register (0: no vectors). `registers`: how many there are. `fma`: a
    fused multiply-add of SIMD values is as fast as a multiply; `scalar_fma`: and so is one of scalars, with
    the same result. `cache`: bytes of the nearest data cache and of the second. `index_bits`: the width of
    `dtypes.index`. `dots`: the kinds of Ops.DOT that it has, in SIMD values of 4 lanes and more, and in
    scalars; `adding_dots`: they add to their sums in the same instruction. `matrices`: the kinds of
    Ops.MATMUL that it has. `workgroups`: what it has for
    grids of workgroups; None where a kernel is one thread of control. `max_buffers`: the most pointers of a
    kernel (0: any number). `alignment`: of buffers, in bytes. `float64`: it computes with them. `packed`:
    dtypes whose elements lie in words of 32 bits, which are loaded and stored whole. `tensor_cores`: those
    that products use, preferred ones first. `processor`: what compiled code depends on beyond that (a host's
    processor and compiler), in words of its own.
    """

    name: str
    simd_bytes: int = 0
    registers: int = 16
    fma: bool = False
    scalar_fma: bool = False
    threads: int = 1
    cache: tuple[int, int] = (32 << 10, 2 << 20)
    index_bits: int = 64
    dots: frozenset[Dot] = frozenset()
    adding_dots: bool = True
    matrices: frozenset[Dot] = frozenset()
    workgroups: Workgroups | None = None
    max_buffers: int = 0
    alignment: int = 64
    float64: bool = True
    packed: tuple[DType, ...] = ()
    tensor_cores: tuple[TensorCore, ...] = ()
    processor: str = ""

    @property
    def key(self) -> str:
        """A string that names these capabilities; part of every cache key."""
        fma = ("+fma" if self.fma else "") + ("+scalar" if self.scalar_fma else "")
        host = f"-{self.processor}" if self.processor else ""
        dots = "".join(sorted(f"+dot_{d.a.name}{d.bits or ''}_{d.b.name}" for d in self.dots))
        dots += "" if self.adding_dots else "-apart"
        dots += "".join(sorted(f"+matmul_{d.a.name}_{d.b.name}" for d in self.matrices))
        simd = f"simd{self.simd_bytes}x{self.registers}{fma}{dots}"
        grid = f"-{self.workgroups.key}-b{self.max_buffers}-a{self.alignment}" if self.workgroups else ""
        packed = "-packed" + "".join(f"+{d.name}" for d in self.packed) if self.packed else ""
        cores = "".join(f"+{core.name}" for core in self.tensor_cores)
        return f"{self.name}-{simd}-i{self.index_bits}-t{self.threads}{grid}{packed}{cores}{host}"
