"""`Program`: the interface between compiler and runtimes. Layers above make Programs; layers below run them.

Plain, immutable, versioned data: no UOps, no devices' objects. `to_bytes` writes

    b"PGRD" | u32 version | u32 header length | SHA-256 of the header | header (UTF-8 JSON)
    | the code of each kernel | the driver | values

(little-endian), so any language can read it. `values` is empty, or a safetensors file without metadata, with
the contents of every buffer of the role `param` or `state`, by name. The header is this Program's fields. In
the place of code and values it describes these parts, with their SHA-256 (`runtime/parts.py`). It is strict
JSON (`runtime/strict_json.py`) with integers alone, and `_check` below says what a reader refuses.
Names are unique among the inputs, among the outputs, and among parameters and state together. An element of a
`shape` is an int, or the name of a Variable; null: unknown.

The language of a kernel is the format of its `code`: `wasm` a module, `object` an object file for the target,
`library` a shared object for it (which other kernels may share), `linear` INTERP's list of UOps as JSON,
`wgsl`, `cuda` and `msl` source text. Kernels in these three have a `workgroup`, the number of invocations
(x, y, z), and are launched on a `grid` of workgroups (x, y, z); both are null for all others. A kernel with a
`subgroup` other than 0 exchanges values in subgroups of that many invocations, and needs subgroups of exactly
that size. A grid's size is a number, the name of a Variable, or an operation on sizes, `["IDIV", a, b]`
(`runtime/grid.py` has them all; integers are Python's); where one is 0, there is nothing to launch.

Threads. A run has up to `Program.threads` threads. All of them run a parallel kernel; its variables `thread`
and `threads` are a thread's number (from 0) and their count. A parallel kernel with the variable `part` is
called once for every part from 0 to `parts` - 1, by whichever thread takes it; there are at most four times
as many parts as threads, and a run may choose how many. Any other parallel kernel is called once by each
thread. Thread 0 runs the kernels that are not parallel. Each thread runs its launches in order, and only
barriers order launches of different threads: no thread starts a launch with a `barrier` before all threads
have completed all earlier launches. The end of a run is a barrier too. A run may always have one thread,
which is thread 0 of 1 and needs no barriers. The positions of barriers were decided when the Program was
assembled (`engine/barriers.py`); every runtime obeys them. Buffers that are not scratch do not overlap,
unless no launch writes to them.

A captured step has a `driver`: one artefact whose function `run` makes all launches. It takes a table: the
address of each buffer by its number (anything for scratch), then the arena's.
- CPU: an object file that calls the kernels by name; `void run(char **table, int64_t *variables, int64_t
  thread, int64_t threads, void **team)`, called once by every thread. `team[0]` is the barrier, `void
  barrier(void **team, int64_t threads)`, `team[3]` what calls a kernel for the parts that a thread takes,
  `void run_parts(kernel, char **pointers, int64_t *values, int64_t place of part in values, int64_t number
  of the call, int64_t thread, int64_t threads, void **team)`; `team` may be null for one thread.
- CC: a shared object with the same function, and an array `kernels` that gets their addresses.
- WASM: a module that holds the kernels, whose own `code` is empty; `run(i32 address of the table)`, the table
  in u32 words, the variables (their low 32 bits) behind the arena. When a kernel is parallel, it is
  `run(i32 address of the table, i32 thread, i32 threads)`; the barrier's words are in the memory's first 64
  bytes, all zero before the first run. Made for a target with threads, modules import a shared memory.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polygrad.dtype import dtypes, to_dtype
from polygrad.errors import ProgramError
from polygrad.helpers import THREAD_VARIABLES, prod
from polygrad.runtime.grid import Grid, as_tuples, is_grid
from polygrad.runtime.limits import (
    MAX_ARGUMENTS,
    MAX_BYTES,
    MAX_INTEGER,
    MAX_INVOCATIONS,
    MAX_RANK,
    MAX_SUBGROUP,
    MAX_THREADS,
)
from polygrad.runtime.parts import part_of, read_header, read_parts, write_header

MAGIC, VERSION = b"PGRD", 9
ROLES = ("input", "output", "param", "state", "scratch")
LANGUAGES = ("wasm", "object", "library", "linear", "wgsl", "cuda", "msl")
GRID_LANGUAGES = frozenset({"wgsl", "cuda", "msl"})  # of kernels that are launched on grids
_ITEM_SIZES = {dtype.name: dtype.itemsize for dtype in (*dtypes.all, *dtypes.fp8s)}


@dataclass(frozen=True)
class BufferSpec:
    """A buffer: `size` elements of `dtype`. Scratch lives in the arena at byte `offset`, others are bound at
    each run.

    An exported step's have a `name`, and the `shape` of what they hold in row-major order, which with
    Variables may be less than `size` elements.
    """

    size: int
    dtype: str
    role: str
    offset: int = -1
    name: str = ""
    shape: tuple[int | str, ...] | None = None


@dataclass(frozen=True)
class Kernel:
    """One compiled artefact: `code`, in `language`, holds a function `name` of `n_buffers` pointers, then the
    named `variables`. `writes`: the positions of the pointers through which it writes. `parallel`: whether
    all threads run it (see above). `workgroup`: the invocations of a workgroup along x, y and z. `subgroup`:
    of how many a subgroup has to be (0: any number).
    """

    name: str
    code: bytes
    n_buffers: int
    variables: tuple[str, ...] = ()
    language: str = field(kw_only=True)
    writes: tuple[int, ...] = field(kw_only=True)
    parallel: bool = field(kw_only=True, default=False)
    workgroup: tuple[int, int, int] | None = field(kw_only=True, default=None)
    subgroup: int = field(kw_only=True, default=0)

    def __post_init__(self) -> None:
        if self.parallel == THREAD_VARIABLES.isdisjoint(self.variables):
            raise ProgramError(
                f"kernel {self.name}: expected one of the variables thread, threads, part and parts just if "
                f"it is parallel, got {self.variables} and parallel={self.parallel}"
            )


@dataclass(frozen=True)
class Binding:
    """The buffer and the byte offset of a kernel's pointer."""

    buffer: int
    offset: int = 0


@dataclass(frozen=True)
class Launch:
    """Run kernel number `kernel` once with these buffers, in the order of its pointers; on a GPU, `grid`
    workgroups of it. `barrier`: after all threads have completed all launches before it. `places`: the lines
    of a program that it comes from, if they were recorded; the bytes of a Program have none.
    """

    kernel: int
    bindings: tuple[Binding, ...]
    grid: Grid | None = None
    barrier: bool = False
    places: tuple[Any, ...] = field(default=(), kw_only=True, compare=False)


@dataclass(frozen=True)
class Variable:
    """A symbolic integer, bound at each run, from `lo` to `hi` inclusive."""

    name: str
    lo: int
    hi: int


@dataclass(frozen=True)
class Program:
    """A list of launches in order, for one device. `arena`: the size of the scratch arena in bytes.

    `driver`: an artefact that makes all launches at once (see above), or empty. `threads`: the most threads
    of a run, 1 if no kernel is parallel. `shared_memory`: whether its WebAssembly modules import a shared
    memory. Modules that were compiled on a host with threads do, even if no kernel is parallel.
    """

    device: str
    target: str
    buffers: tuple[BufferSpec, ...]
    kernels: tuple[Kernel, ...]
    launches: tuple[Launch, ...]
    variables: tuple[Variable, ...] = ()
    arena: int = 0
    driver: bytes = b""
    threads: int = 1
    shared_memory: bool = False

    @functools.cached_property
    def bound_bytes(self) -> int:
        """The sum of the sizes of all launches' buffers in bytes; a buffer counts once for each binding."""
        sizes = [b.size * to_dtype(b.dtype).itemsize for b in self.buffers]
        return sum(sizes[b.buffer] for launch in self.launches for b in launch.bindings)

    @functools.cached_property
    def bound_buffers(self) -> list[int]:
        """The numbers of the buffers that a run needs memory for, besides the arena."""
        return [i for i, spec in enumerate(self.buffers) if spec.role != "scratch" and spec.size]

    def check_memory(self, handles: Sequence[Any], arena: Any) -> None:
        """Raises ProgramError if a run lacks memory. `handles`: falsy where a buffer has none."""
        missing = [i for i in self.bound_buffers if i >= len(handles) or not handles[i]]
        if missing or len(handles) != len(self.buffers) or (self.arena and not arena):
            raise ProgramError(
                f"run: buffers {missing} have no memory: expected allocations for buffers "
                f"{self.bound_buffers}, and an arena of {self.arena} bytes"
            )

    def check_variables(self, values: Mapping[str, int]) -> list[int]:
        """The values of the Variables, in their order. Raises ProgramError for one that is missing or out of
        its bounds."""
        out = []
        for v in self.variables:
            value = values.get(v.name)
            if value is None or not v.lo <= value <= v.hi:
                raise ProgramError(f"run: expected variable {v.name} from {v.lo} to {v.hi}, got {value}")
            out.append(value)
        return out

    def place(self, binding: Binding) -> tuple[int, int]:
        """The entry of the driver's table that a pointer is in, and the byte offset to add to it."""
        spec = self.buffers[binding.buffer]
        if spec.role == "scratch":
            return len(self.buffers), spec.offset + binding.offset
        return binding.buffer, binding.offset

    def require(self, device: str, language: str) -> None:
        """Raises ProgramError unless this Program is for `device` and its kernels are in `language`."""
        if self.device != device:
            raise ProgramError(f"load: expected a Program for {device}, got one for {self.device}")
        for kernel in self.kernels:
            if kernel.language != language:
                raise ProgramError(
                    f"load: kernel {kernel.name}: expected {language}, which {device} runs, got "
                    f"{kernel.language}: export the step for another device, or use a newer polygrad"
                )

    def with_code(self, change: Callable[[bytes], bytes]) -> Program:
        """The Program with all its code, that of kernels and the driver, changed by a function."""
        kernels = tuple(dataclasses.replace(k, code=change(k.code)) if k.code else k for k in self.kernels)
        driver = change(self.driver) if self.driver else b""
        return dataclasses.replace(self, kernels=kernels, driver=driver)

    def check(self) -> None:
        """Raises ProgramError for a Program that readers of its bytes would refuse."""
        try:
            _check(self)
        except (ValueError, KeyError, TypeError) as e:
            raise ProgramError(f"Program: expected what a file can have, got {e}") from e

    def to_bytes(self, values: bytes = b"") -> bytes:
        """This Program, and `values` (see above), as bytes. The result is deterministic."""
        header = dataclasses.asdict(self)
        for kernel in header["kernels"]:
            kernel["code"] = part_of([kernel["code"]])
        for launch in header["launches"]:
            del launch["places"]
        header["driver"], header["values"] = part_of([self.driver]), part_of([values])
        codes = [*(k.code for k in self.kernels), self.driver]
        return b"".join((write_header(MAGIC, VERSION, header, sum(map(len, codes))), *codes, values))

    @staticmethod
    def from_bytes(data: bytes) -> Program:
        """Read a Program that `to_bytes` wrote. Raises ProgramError for other data."""
        return read_program(data)[0]


def read_program(data: Any) -> tuple[Program, memoryview]:
    """Read the Program and the values that `Program.to_bytes` wrote, from bytes or a buffer. The values are
    not copied. Raises ProgramError for other data."""
    try:
        _, header, raw = read_header(memoryview(data).cast("B"), MAGIC, (VERSION,), "Program.from_bytes")
        program, values = _parse(header, raw)
        _check(program)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as e:
        raise ProgramError(f"Program.from_bytes: expected a whole Program, got damaged bytes ({e})") from e
    return program, values


def _parse(header: dict[str, Any], raw: memoryview) -> tuple[Program, memoryview]:
    described = [(f"the code of kernel {k['name']!r:.80}", k["code"]) for k in _tuple(header["kernels"])]
    described += [("the driver", header["driver"]), ("the values", header["values"])]
    *codes, driver, values = read_parts(raw, described)
    kernels = (
        _read(
            Kernel,
            k,
            code=bytes(code),
            variables=_tuple(k["variables"]),
            writes=_tuple(k["writes"]),
            workgroup=None if k["workgroup"] is None else _tuple(k["workgroup"]),
        )
        for k, code in zip(header["kernels"], codes, strict=True)
    )
    launches = (
        _read(
            Launch,
            x,
            bindings=tuple(_read(Binding, b) for b in _tuple(x["bindings"])),
            grid=None if x["grid"] is None else tuple(map(as_tuples, _tuple(x["grid"]))),
        )
        for x in _tuple(header["launches"])
    )
    buffers = (
        _read(BufferSpec, b, shape=None if b["shape"] is None else _tuple(b["shape"]))
        for b in _tuple(header["buffers"])
    )
    others = {name: value for name, value in header.items() if name != "values"}
    program = _read(
        Program,
        others,
        buffers=tuple(buffers),
        kernels=tuple(kernels),
        launches=tuple(launches),
        variables=tuple(_read(Variable, v) for v in _tuple(header["variables"])),
        driver=bytes(driver),
    )
    return program, values


def _tuple(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"no list: {value!r:.80}")
    return tuple(value)


@functools.cache
def _field_names(cls: Any) -> frozenset[str]:
    """The fields that bytes have: all but those that two objects are not compared by."""
    return frozenset(f.name for f in dataclasses.fields(cls) if f.compare)


def _read(cls: Any, fields: dict[str, Any], **replacements: Any) -> Any:
    """An object of a header, which has exactly the fields of its class."""
    if fields.keys() != _field_names(cls):
        raise ValueError(f"a {cls.__name__} with the fields {sorted(fields)}")
    return cls(**{**fields, **replacements})


def _check(program: Program) -> None:
    """Raises ValueError, TypeError or KeyError for a Program that contradicts itself or exceeds a limit.
    `checkHeader` of `wasm_runtime/src/program_checks.ts` refuses the same Programs."""
    names = (program.device, program.target)
    _expect(all(isinstance(name, str) for name in names), "device and target", names)
    _expect(_is_count(program.arena, MAX_BYTES), "size of an arena", program.arena)
    _expect(_is_count(program.threads, MAX_THREADS) and program.threads > 0, "threads", program.threads)
    parallel = any(kernel.parallel for kernel in program.kernels)
    _expect(program.threads == 1 or parallel, "parallel kernel for its threads", program.threads)
    _expect(type(program.shared_memory) is bool, "kind of memory", program.shared_memory)
    for v in program.variables:
        _check_variable(v)
    bounds = {v.name: v.hi for v in program.variables}
    _expect(len(bounds) == len(program.variables), "names of their own of Variables", program.variables)
    nbytes = [_check_buffer(spec, bounds, program.arena) for spec in program.buffers]
    _check_names(program.buffers)
    variables = frozenset(bounds)
    known = variables | THREAD_VARIABLES
    for kernel in program.kernels:
        _check_kernel(kernel, known)
    for launch in program.launches:
        _expect(_is_count(launch.kernel, len(program.kernels) - 1), "kernel", launch)
        _check_launch(launch, program.kernels[launch.kernel], nbytes, variables)


def _expect(condition: bool, what: str, got: object) -> None:
    if not condition:
        raise ValueError(f"no {what}: {got!r:.200}")


def _is_count(value: Any, limit: int = MAX_INTEGER) -> bool:
    return type(value) is int and 0 <= value <= limit


def _check_variable(v: Variable) -> None:
    is_range = all(type(n) is int and abs(n) <= MAX_INTEGER for n in (v.lo, v.hi)) and v.lo <= v.hi
    _expect(isinstance(v.name, str) and v.name not in THREAD_VARIABLES and is_range, "Variable", v)


def _check_buffer(spec: BufferSpec, bounds: Mapping[str, int], arena: int) -> int:
    """The bytes of a buffer. `bounds`: the greatest value of each Variable."""
    _expect(spec.role in ROLES and isinstance(spec.name, str), "buffer", spec)
    _expect(isinstance(spec.dtype, str) and spec.dtype in _ITEM_SIZES, "dtype of memory", spec)
    _expect(_is_count(spec.size), "size of a buffer", spec)
    nbytes = spec.size * _ITEM_SIZES[spec.dtype]
    _expect(nbytes <= MAX_BYTES, "size of a buffer", spec)
    if spec.role == "scratch":
        _expect(_is_count(spec.offset) and spec.offset + nbytes <= arena, "place in the arena", spec)
    else:
        _expect(type(spec.offset) is int and spec.offset == -1, "place", spec)
    if spec.shape is not None:
        sizes = [bounds[n] if isinstance(n, str) else n for n in spec.shape]
        _expect(_product(sizes) == spec.size, "shape", spec)
    return nbytes


def _product(sizes: list[Any]) -> int | None:
    """The number of elements; None for no shape."""
    product = 1
    for n in sizes:
        if not _is_count(n) or product * n > MAX_BYTES:
            return None
        product *= n
    return product if len(sizes) <= MAX_RANK else None


def _check_names(buffers: Iterable[BufferSpec]) -> None:
    names: set[tuple[str, str]] = set()
    for spec in buffers:
        key = ("value" if spec.role in ("param", "state") else spec.role, spec.name)
        _expect(not spec.name or key not in names, "name of its own", spec)
        names.add(key)


def _check_kernel(k: Kernel, variables: frozenset[str]) -> None:
    _expect(isinstance(k.name, str) and k.language in LANGUAGES, "kernel", (k.name, k.language))
    _expect(_is_count(k.n_buffers, MAX_ARGUMENTS - len(k.variables)), "number of arguments", k.n_buffers)
    _expect(variables.issuperset(k.variables), "variables of the Program", k.variables)
    _expect(all(_is_count(n, k.n_buffers - 1) for n in k.writes), "pointers of the kernel", k.writes)
    _expect(type(k.parallel) is bool, "parallel kernel or serial one", k.parallel)
    _expect(_is_count(k.subgroup, MAX_SUBGROUP), "size of a subgroup", k.subgroup)
    is_size = k.workgroup is not None and _is_workgroup(k.workgroup)
    _expect(
        is_size if k.language in GRID_LANGUAGES else k.workgroup is None, "size of a workgroup", k.workgroup
    )


def _is_workgroup(size: tuple[int, int, int]) -> bool:
    is_triple = len(size) == 3 and all(_is_count(n, MAX_INVOCATIONS) for n in size)
    return is_triple and 0 < prod(size) <= MAX_INVOCATIONS


def _check_launch(launch: Launch, kernel: Kernel, nbytes: list[int], variables: frozenset[str]) -> None:
    """`nbytes`: the size of each buffer."""
    _expect(len(launch.bindings) == kernel.n_buffers, "binding for each pointer", launch)
    for b in launch.bindings:
        _expect(_is_count(b.buffer, len(nbytes) - 1), "buffer", b)
        _expect(_is_count(b.offset, nbytes[b.buffer]), "offset in a buffer", b)
    has_grid = is_grid(launch.grid, variables)
    _expect(has_grid if kernel.language in GRID_LANGUAGES else launch.grid is None, "grid", launch)
    _expect(type(launch.barrier) is bool, "barrier", launch)
