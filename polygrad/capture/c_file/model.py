"""`CModel`: everything that a C file says, as data: entries, tensors with their C names, where they are.

Knows Programs, writes no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from polygrad.capture.c_file.names import identifiers, is_identifier
from polygrad.capture.c_options import COptions, Example
from polygrad.dtype import DType, dtypes, to_dtype
from polygrad.errors import ArgumentError, DTypeError
from polygrad.helpers import prod, round_up
from polygrad.nn.safetensors import TensorEntry, entries_header
from polygrad.runtime.program import Program

ALIGNMENT = 64  # of state and scratch in the caller's memory, which itself may have that of its elements
Sizes = tuple[int | str, ...]

# Types of elements in a header. Those without a type of C are their bits.
C_TYPES = {
    dtypes.bool: "uint8_t",
    **{d: f"{d}_t" for d in dtypes.ints},
    **dict.fromkeys(dtypes.fp8s, "uint8_t"),
    dtypes.float16: "uint16_t", dtypes.bfloat16: "uint16_t",
    dtypes.float32: "float", dtypes.float64: "double",
}  # fmt: skip


@dataclass(frozen=True)
class Member:
    """A tensor as a member of a struct: the tensor's name, that of the member, and what memory holds.
    `size`: elements, with the greatest value of each Variable."""

    label: str
    name: str
    dtype: DType
    shape: Sizes
    size: int

    @property
    def type(self) -> str:
        return C_TYPES[self.dtype]

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


@dataclass(frozen=True)
class Value(Member):
    """A parameter or, if runs write it, a state. Its first contents are zeros if `data` is empty; else they
    are at byte `place` of the safetensors file, or in the C file (None). `offset`: of a state in the caller's
    memory."""

    data: memoryview
    is_state: bool
    place: int | None
    offset: int = 0


@dataclass(frozen=True)
class Bound:
    """A Variable as an argument, with its name in C."""

    label: str
    name: str
    lo: int
    hi: int


@dataclass(frozen=True)
class Entry:
    """A step as a function. `structs`: what the names of its structs begin with."""

    label: str
    function: str
    structs: str
    program: Program
    example: Example
    inputs: tuple[Member, ...]
    outputs: tuple[Member, ...]
    variables: tuple[Bound, ...]

    def members(self, role: str) -> tuple[Member, ...]:
        return self.inputs if role == "input" else self.outputs


@dataclass(frozen=True)
class CModel:
    """`stem`: of the names of its files. `weights`: the header of the safetensors file, empty if there is
    none."""

    name: str
    stem: str
    entries: tuple[Entry, ...]
    values: tuple[Value, ...]
    weights: bytes
    options: COptions

    @property
    def params(self) -> tuple[Value, ...]:
        return tuple(v for v in self.values if not v.is_state)

    @property
    def state(self) -> tuple[Value, ...]:
        return tuple(v for v in self.values if v.is_state)

    @property
    def state_size(self) -> int:
        """The bytes of all state in the caller's memory."""
        return max((round_up(v.offset + v.nbytes, ALIGNMENT) for v in self.state), default=0)

    @property
    def weights_size(self) -> int:
        """The bytes of the safetensors file."""
        beside = [v for v in self.values if v.place is not None]
        return max((v.place + v.nbytes for v in beside if v.place is not None), default=0)

    @property
    def macro(self) -> str:
        """What the names of macros begin with."""
        return self.name.upper()


def describe(
    stem: str,
    steps: Mapping[str, tuple[Program, Example]],
    contents: Mapping[str, memoryview],
    options: COptions,
) -> CModel:
    """The model of steps by name, and the contents of what they keep, for files named `stem`. One step alone
    is the function `run`.

    Raises ArgumentError for a name that is no identifier, DTypeError for a tensor that C has no type for.
    """
    _check_dtypes(steps)
    name = options.name or identifiers([stem])[0]
    if not is_identifier(name):
        raise ArgumentError(f"save: name: expected an identifier of C that is no keyword, got {name!r}")
    names = identifiers(steps, ("init", "size", "selftest", "status_text", "params", "state", "status"))
    is_single = len(steps) == 1
    entries = []
    for identifier, (label, (program, example)) in zip(names, steps.items(), strict=True):
        bounds = identifiers((v.name for v in program.variables), ("model", "inputs", "outputs"))
        entries.append(
            Entry(
                label,
                f"{name}_run" if is_single else f"{name}_{identifier}",
                name if is_single else f"{name}_{identifier}",
                program,
                example,
                _members(program, "input"),
                _members(program, "output"),
                tuple(Bound(v.name, n, v.lo, v.hi) for v, n in zip(program.variables, bounds, strict=True)),
            )
        )
    values, header = _values([program for program, _ in steps.values()], contents, options.embed)
    return CModel(name, stem, tuple(entries), values, header, options)


def _check_dtypes(steps: Mapping[str, tuple[Program, Example]]) -> None:
    for label, (program, _) in steps.items():
        for spec in program.buffers:
            if to_dtype(spec.dtype) not in C_TYPES:
                raise DTypeError(
                    f"save: {label}: {spec.role} {spec.name or 'memory'} has dtype {spec.dtype}: C has no "
                    f"type for it: expected one of {', '.join(map(str, C_TYPES))}: cast it"
                )


def _members(program: Program, role: str) -> tuple[Member, ...]:
    specs = [b for b in program.buffers if b.role == role]
    names = identifiers(b.name for b in specs)
    return tuple(
        Member(b.name, n, to_dtype(b.dtype), b.shape or (), b.size) for b, n in zip(specs, names, strict=True)
    )


def _values(
    programs: Iterable[Program], contents: Mapping[str, memoryview], embed: int
) -> tuple[tuple[Value, ...], bytes]:
    """Parameters and states, and the header of the safetensors file of those that are not embedded."""
    kept = [b for program in programs for b in program.buffers if b.role in ("param", "state")]
    states = {b.name for b in kept if b.role == "state"}
    specs = {b.name: b for b in kept}
    names = dict(zip(specs, identifiers(specs), strict=True))
    data = {name: _without_zeros(contents[name]) for name in specs}
    total, embedded = 0, set()
    for name in sorted(specs, key=lambda n: data[n].nbytes):
        total += data[name].nbytes
        if total > embed:
            break
        embedded.add(name)
    # Large elements first, so that all are aligned in the file.
    beside = sorted(specs.keys() - embedded, key=lambda n: (-to_dtype(specs[n].dtype).itemsize, n))
    table = {n: TensorEntry(to_dtype(specs[n].dtype), _ints(specs[n].shape), data[n]) for n in beside}
    header = entries_header(table) if beside else b""
    places, end = {}, len(header)
    for name in beside:
        places[name] = end
        end += data[name].nbytes
    values, offset = [], 0
    for name, spec in specs.items():
        value = Value(
            name, names[name], to_dtype(spec.dtype), spec.shape or (), spec.size, data[name],
            name in states, places.get(name), offset if name in states else 0,
        )  # fmt: skip
        values.append(value)
        offset = round_up(offset + value.nbytes, ALIGNMENT) if value.is_state else offset
    return tuple(values), header


def _without_zeros(data: memoryview) -> memoryview:
    """The data, or nothing where they are zeros."""
    return data if bytes(data).count(0) < data.nbytes else memoryview(b"")


def _ints(shape: Sizes | None) -> tuple[int, ...]:
    """The shape of what is kept, which has no Variables."""
    sizes = tuple(n for n in shape or () if isinstance(n, int))
    assert len(sizes) == len(shape or ()) and prod(sizes) >= 0
    return sizes
