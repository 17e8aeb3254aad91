"""A kernel of the INTERP device as Python source: one assignment an instruction, one `for` a RANGE.

    def kernel(p0, p1, n0):                the pointers (memoryviews of elements) and the variables
        for v3 in range(4):
            F[0] = p1[v3] + 1.0; v5 = F[0]     a float32: through one element of memory, which rounds it
            p0[v3] = v5

Reads the JSON that `renderer/interp_json.py` writes and documents. Knows no UOps.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes, to_dtype
from polygrad.errors import CompileError, ProgramError
from polygrad.runtime.interp import scalar

_MAX_LOOPS = 20  # CPython's limit of statically nested blocks

# The globals of a kernel: scratch memory for rounding and reinterpretation, and functions that are not
# operators.
_scratch = memoryview(bytearray(8))
GLOBALS: dict[str, Any] = {
    "F": _scratch[:4].cast("f"), "I": _scratch[:4].cast("i"), "U": _scratch[:4].cast("I"),
    "D": _scratch.cast("d"), "L": _scratch.cast("q"), "W": _scratch.cast("Q"),
    "inf": float("inf"), "nan": float("nan"),
    **{f.__name__: f for f in (
        scalar.round_float, scalar.float_to_int, scalar.divide, scalar.maximum, scalar.square_root,
        scalar.truncate, scalar.exp2, scalar.log2, scalar.sin, scalar.half_from_bits, scalar.half_to_bits,
        scalar.bfloat_from_bits, scalar.bfloat_to_bits, scalar.reinterpret,
    )},
    **{f"t_{d.name}": d for d in (*dtypes.all, dtypes.index)},
}  # fmt: skip

_VIEWS = {
    dtypes.float32: "F", dtypes.int32: "I", dtypes.uint32: "U", dtypes.float64: "D", dtypes.int64: "L",
    dtypes.uint64: "W",
}  # fmt: skip

# By kind of dtype, before rounding or wrapping. A bool is True or False.
_COMMON = {"CMPLT": "{0} < {1}", "CMPEQ": "{0} == {1}", "CMPNE": "{0} != {1}", "WHERE": "{1} if {0} else {2}"}
_FLOAT = _COMMON | {
    "ADD": "{0} + {1}", "SUB": "{0} - {1}", "MUL": "{0} * {1}", "FDIV": "divide({0}, {1})", "NEG": "-{0}",
    "RECIPROCAL": "divide(1.0, {0})", "MAX": "maximum({0}, {1})", "SQRT": "square_root({0})",
    "TRUNC": "truncate({0})", "EXP2": "exp2({0})", "LOG2": "log2({0})", "SIN": "sin({0})",
}  # fmt: skip
_INT = _COMMON | {
    "ADD": "{0} + {1}", "SUB": "{0} - {1}", "MUL": "{0} * {1}", "NEG": "-{0}", "TRUNC": "{0}",
    "IDIV": "({0} // {1} if {1} else 0)", "MOD": "({0} % {1} if {1} else 0)", "MAX": "max({0}, {1})",
    "SHL": "{0} << {1}", "SHR": "{0} >> {1}", "AND": "{0} & {1}", "OR": "{0} | {1}", "XOR": "{0} ^ {1}",
    "MULACC": "{0} * {1} + {2}",
}  # fmt: skip
_BOOL = _COMMON | {
    "ADD": "{0} or {1}", "MAX": "{0} or {1}", "MUL": "{0} and {1}", "AND": "{0} and {1}", "OR": "{0} or {1}",
    "XOR": "{0} != {1}", "SUB": "{0} != {1}",
}  # fmt: skip
# Operations whose integer result always fits the dtype.
_EXACT = frozenset({"WHERE", "MAX", "SHR", "AND", "OR", "XOR", "MOD", "TRUNC"})
_COMPARISONS = frozenset({"CMPLT", "CMPEQ", "CMPNE"})


@dataclass(frozen=True)
class PointerParameter:
    """A pointer parameter, number `slot` of the kernel: a view of `size` elements."""

    slot: int
    dtype: DType
    size: int


@dataclass(frozen=True)
class PythonKernel:
    """A kernel as source; its parameters are the pointers, then the variables, in these orders."""

    source: str
    pointers: tuple[PointerParameter, ...]
    variables: tuple[str, ...]


@functools.lru_cache(4096)
def load_kernel(code: bytes) -> tuple[Callable[..., None], PythonKernel]:
    """The function of a kernel's code, and its parameters. Raises ProgramError for code in another format."""
    try:
        parsed = json.loads(code)
        name, instructions = parsed["name"], parsed["instructions"]
    except (ValueError, TypeError, KeyError) as e:
        raise ProgramError(f"INTERP: expected a kernel in JSON, got {bytes(code[:40])!r} ({e})") from e
    kernel = to_python(instructions)
    names = dict(GLOBALS)
    exec(compile(kernel.source, f"<INTERP {name}>", "exec"), names)
    return names["kernel"], kernel


def to_python(instructions: list[list[Any]]) -> PythonKernel:
    """A list of instructions as Python.

    Raises CompileError for an instruction that INTERP does not know, or for more nested loops than Python
    allows.
    """
    return _PythonWriter(instructions).write()


class _PythonWriter:
    def __init__(self, instructions: list[list[Any]]) -> None:
        self.instructions = [(op, to_dtype(dtype), sources, arg) for op, dtype, sources, arg in instructions]
        self.lines: list[str] = []
        self.names: list[str] = []  # the expression of each instruction's value
        self.pointers: list[PointerParameter] = []
        self.variables: list[str] = []
        self.depth = 1

    def write(self) -> PythonKernel:
        for i, (op, dtype, sources, arg) in enumerate(self.instructions):
            self.names.append(self._instruction(i, op, dtype, sources, arg))
        parameters = [*(f"p{p.slot}" for p in self.pointers), *(f"n{k}" for k in range(len(self.variables)))]
        lines = [f"def kernel({', '.join(parameters)}):", *self.lines, " return", ""]
        return PythonKernel("\n".join(lines), tuple(self.pointers), tuple(self.variables))

    def _line(self, text: str) -> None:
        self.lines.append(" " * self.depth + text)

    def _instruction(self, i: int, op: str, dtype: DType, sources: list[int], arg: Any) -> str:
        name = f"v{i}"
        args = [self.names[s] for s in sources]
        if op == "CONST":
            return _literal(dtype, arg)
        if op == "PARAM":
            slot, size = _integer(arg[0]), _integer(arg[1])
            self.pointers.append(PointerParameter(slot, dtype, size))
            return f"p{slot}"
        if op == "DEFINE_VAR":
            self.variables.append(arg[0])
            return f"n{len(self.variables) - 1}"
        if op == "DEFINE_REG":
            return f"r{_integer(arg[0])}"
        if op == "AFTER":
            return args[0]
        if op == "INDEX":
            return self._element(sources, args)
        if op == "RANGE":
            if self.depth > _MAX_LOOPS:
                raise CompileError(f"INTERP: expected at most {_MAX_LOOPS} nested loops, got more")
            self._line(f"for {name} in range({args[0]}):")
            self.depth += 1
        elif op == "END":
            self._line("pass")
            self.depth -= 1
        elif op == "LOAD":
            self._load(name, dtype, sources, args)
        elif op == "STORE":
            self._store(sources, args)
        elif op == "CAST":
            self._assign(name, dtype, _cast(self._dtype(sources[0]), dtype, args[0]))
        elif op == "BITCAST":
            self._bitcast(name, self._dtype(sources[0]), dtype, args[0])
        elif op != "SINK":
            self._alu(name, op, dtype, self._dtype(sources[-1]), args)
        return name

    def _dtype(self, position: int) -> DType:
        return self.instructions[position][1]

    # --- memory

    def _element(self, sources: list[int], args: list[str]) -> str:
        if args[0].startswith("r"):
            return args[0]
        index = args[1]
        if self.instructions[sources[1]][0] not in ("CONST", "RANGE"):
            # a negative index would count from the end: replace it by one that is out of range for any
            # pointer
            index = f"{index} if {index} >= 0 else 1 << 62"
        return f"{args[0]}[{index}]"

    def _gate(self, index: int) -> str | None:
        sources = self.instructions[index][2]
        return self.names[sources[2]] if len(sources) > 2 else None

    def _load(self, name: str, dtype: DType, sources: list[int], args: list[str]) -> None:
        element, gate = args[0], self._gate(sources[0])
        if not element.startswith("r"):
            unpack = {dtypes.float16: "half_from_bits", dtypes.bfloat16: "bfloat_from_bits"}.get(dtype)
            element = f"{unpack}({element})" if unpack else element
        other = args[1] if len(args) > 1 else "0"
        self._line(f"{name} = {element} if {gate} else {other}" if gate else f"{name} = {element}")

    def _store(self, sources: list[int], args: list[str]) -> None:
        element, value = args
        pack = {dtypes.float16: "half_to_bits", dtypes.bfloat16: "bfloat_to_bits"}.get(
            self._dtype(sources[1])
        )
        if pack and not element.startswith("r"):
            value = f"{pack}({value})"
        gate = self._gate(sources[0])
        self._line(f"if {gate}: {element} = {value}" if gate else f"{element} = {value}")

    # --- values

    def _alu(self, name: str, op: str, dtype: DType, operand: DType, args: list[str]) -> None:
        table = _FLOAT if operand.is_float else _BOOL if operand.is_bool else _INT
        template = table.get(op)
        if template is None and op == "MULACC" and operand.is_float:
            self._assign(name, dtype, f"{args[0]} * {args[1]}")
            template, args = "{0} + {1}", [name, args[2]]
        if template is None:
            raise CompileError(f"INTERP: expected an operation of a linear kernel, got {op} of {operand}")
        text = template.format(*args)
        if op in _COMPARISONS or operand.is_bool or op == "WHERE" or (operand.is_int and op in _EXACT):
            self._line(f"{name} = {text}")
        else:
            self._assign(name, dtype, text)

    def _assign(self, name: str, dtype: DType, text: str) -> None:
        """`name` = the value of `text`, rounded or wrapped to `dtype`."""
        if dtype is dtypes.float32:
            self._line(f"F[0] = {text}; {name} = F[0]")
        elif dtype in (dtypes.float16, dtypes.bfloat16):
            self._line(f"{name} = round_float(t_{dtype.name}, {text})")
        elif dtype.is_unsigned:
            self._line(f"{name} = ({text}) & {dtype.max}")
        elif dtype.is_int and dtype is not dtypes.index:
            self._line(f"{name} = (({text}) + {dtype.max + 1} & {2 * dtype.max + 1}) - {dtype.max + 1}")
        else:
            self._line(f"{name} = {text}")

    def _bitcast(self, name: str, src: DType, dst: DType, text: str) -> None:
        if src in _VIEWS and dst in _VIEWS:
            self._line(f"{_VIEWS[src]}[0] = {text}; {name} = {_VIEWS[dst]}[0]")
        else:
            self._line(f"{name} = reinterpret(t_{src.name}, t_{dst.name}, {text})")


def _integer(value: Any) -> int:
    """`value`, which becomes a part of the source: text of the file must not."""
    if type(value) is not int:
        raise CompileError(f"INTERP: expected an integer in an instruction, got {value!r:.80}")
    return value


def _literal(dtype: DType, arg: Any) -> str:
    if dtype.is_float:
        value = scalar.round_float(dtype, float.fromhex(arg))
        return f"({value!r})" if value < 0 or str(value)[0] == "-" else repr(value)
    value = bool(arg) if dtype.is_bool else _integer(arg)
    return repr(value) if value >= 0 else f"({value})"


def _cast(src: DType, dst: DType, text: str) -> str:
    """An expression whose value, assigned to `dst`, is the conversion."""
    if dst.is_bool:
        return f"{text} != 0"
    if dst.is_float:
        if src.is_float and (dst is dtypes.float64 or dst is dtypes.float32):
            return text  # `_assign` rounds
        if src.bits <= 32 or dst is dtypes.float64:
            text = f"float({text})"  # exact, or rounded to float64
            return text if dst.itemsize >= 4 else f"round_float(t_{dst.name}, {text})"
        return f"round_float(t_{dst.name}, {text})"
    return f"float_to_int(t_{dst.name}, {text})" if src.is_float else f"int({text})"
