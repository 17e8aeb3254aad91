"""`UOp`: the one node type of the IR, immutable and hash-consed, from the tensor graph to the linear kernel.

    UOp(op, dtype, src, arg)

Two structurally equal nodes are the same object, so equality is identity and sharing is free. The
intern table *owns* the nodes, and collections drop those that only the table holds: a node goes while the
table still holds its sources, so freeing a chain of any depth never recurses (a C stack inside a page is
small). No walk in this package recurses either.

Knows nothing of tensors, devices or rewriting. The idea is tinygrad's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError
from polygrad.helpers import prod
from polygrad.monitor import HAS_THREADS, lock
from polygrad.uop.alu import identity_element
from polygrad.uop.args import Axis, AxisKind, ExactFloat, Hooks, Leaf, Reduction, Sharding, Shear, Spent, Var
from polygrad.uop.bounds import bounds_of
from polygrad.uop.intern import collect_young, generations, table
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.origins import watch
from polygrad.uop.shapes import SHAPE_OF_FIRST, Shape, shape_of
from polygrad.uop.sizes import SIZES, Sint, canonical, canonical_shape, size_text

_NAN, _NEGATIVE_ZERO = ExactFloat("nan"), ExactFloat("-0.0")


# --- the node -----------------------------------------------------------------------------------------


def _is_operand(x: Any) -> bool:
    return isinstance(x, (UOp, int, float, Real))


def _operator(op: Ops, reverse: bool = False) -> Callable[[UOp, Any], UOp]:
    """A method for one of Python's binary operators. A symbolic integer and a float make a float."""

    def apply(self: UOp, x: Any) -> UOp:
        if not isinstance(x, UOp):
            if not isinstance(x, int):
                if not isinstance(x, Real):
                    return NotImplemented
                if self.dtype is dtypes.index and not isinstance(x, Integral):
                    self = UOp(Ops.CAST, dtypes.default_float, (self,))
            x = UOp.const(self.dtype, x)
        elif x.dtype is not self.dtype and (x.dtype.is_float or self.dtype.is_float):
            self, x = _in_float(self, x.dtype), _in_float(x, self.dtype)
        src = (x, self) if reverse else (self, x)
        return UOp(op, dtypes.bool if op in GroupOp.Comparison else self.dtype, src)

    return apply


def _in_float(x: UOp, dtype: DType) -> UOp:
    return UOp(Ops.CAST, dtype, (x,)) if x.dtype is dtypes.index else x


def _ratio(a: Any, b: Any) -> UOp:
    """a / b in floats, of two scalars."""
    dtype = next((x.dtype for x in (a, b) if isinstance(x, UOp) and x.dtype.is_float), dtypes.default_float)
    a, b = [x.cast(dtype) if isinstance(x, UOp) else UOp.const(dtype, x) for x in (a, b)]
    return UOp(Ops.FDIV, dtype, (a, b))


_UNSET: Any = object()
_KERNELS = frozenset({Ops.SINK, Ops.END})  # every pass walks through these


class UOp:
    """One operation. `src`: its operands. `arg`: the other parameters of `op` (args.py).

    Tensor graph (every node has a `shape`): BUFFER(arg=runtime buffer) 1-D; CONST(arg=value) of shape ();
    ARANGE(arg=size): 0, 1, 2, ...; RESHAPE, EXPAND(arg=shape); PERMUTE(arg=axes); PAD, SHRINK(arg=((lo, hi),
    ...)); FLIP(arg=axes); SHEAR(arg=Shear); elementwise ops over equal shapes; REDUCE_AXIS(arg=Reduction);
    SCAN_AXIS(x, initial[, factor], arg=Reduction), running values (`scan_axis`); FOR(*initial values,
    *other operands, arg=For), the values after a fixed number of iterations;
    CONTIGUOUS(arg=opts or None); DETACH(arg=None, Leaf, Spent or Hooks); NOOP, the value of its first source,
    not its memory (arg: a function from the incoming gradient to the gradients of the further sources);
    COPY(arg=device name or Sharding); THREEFRY(counter: uint64, key: uint64). Memory is a BUFFER or a later
    version of one: AFTER(memory, ASSIGN(movement ops over that memory, value)), or AFTER(memory,
    ASSIGN(memory, *stored operands, arg=AST)) for a kernel written by hand, whose PARAM i is source i.

    Kernels (scalar nodes): PARAM(arg=Param); DEFINE_VAR(arg=Var); DEFINE_REG(arg=Reg); RANGE(size, arg=Axis);
    INDEX(pointer, index[, gate], arg=Steps or None); LOAD(INDEX[, value where the gate is false]);
    STORE(INDEX, value), executed if the gate is true; REDUCE(value, *ranges, arg=op); SCAN(range, value,
    initial[, factor or key], arg=op), the running value in an iteration of an output loop, the innermost of
    its nest: MULACC has a factor, the others a running value for each key; END(effect, *ranges);
    AFTER(value, *effects), the value once the effects have happened;
    SINK(*stores, arg=opts or None). STAGE(value, index, *ranges, arg=Memory) is a pointer to memory that
    holds `value` at `index` for all values of the ranges; it is written within the other loops that the value
    depends on. END and REDUCE list their ranges outermost first. DOT(a: uint32, b: uint32, c, arg=Dot) is c
    plus the dot product of the elements packed in a and b. MATMUL(INDEX, INDEX, range, arg=Dot) is the sum
    over a range that opens no loop of the dot products of the words at two places: only STORE takes it, for a
    tile of rows and lanes. SHUFFLE_XOR(value, arg=mask) is the value of the
    subgroup lane whose number differs in the bits of the mask. SPECIAL(size, arg=Special) is the number of a
    workgroup or of an invocation. BARRIER(*effects): all invocations of a workgroup wait for each other after
    the effects; arg=Pending: after groups of copies, too. COMMIT(*copies) makes a group of them. WMMA(a, b,
    c, *ranges of c's elements, *of a's and b's, arg=TensorCore): the matrix a @ b + c, whose elements are
    distributed over the lanes of a subgroup.

    IDIV and MOD round towards minus infinity, as in Python. The dtype of a PARAM or DEFINE_REG is that of its
    elements.
    """

    __slots__ = ("_below", "_buffer", "_ranges", "_shape", "arg", "bounds", "dtype", "op", "src", "value")

    op: Ops
    dtype: DType
    src: tuple[UOp, ...]
    arg: Any
    bounds: tuple[Any, Any] | None  # of integers and bools: the least and greatest value
    value: UOp | None  # tensor graph: the BUFFER that holds this node's value, once computed
    _shape: Any
    _ranges: frozenset[UOp] | None
    _below: list[UOp] | None  # kernels: what `toposort` gives, kept
    _buffer: UOp | None  # of an AFTER, once it was asked for

    def __new__(cls, op: Ops, dtype: DType = dtypes.void, src: tuple[UOp, ...] = (), arg: Any = None) -> UOp:
        # intern.py has this key too. 1, 1.0 and True are equal, but not the same constant
        key = (op, dtype, src, arg) if op is not Ops.CONST else (op, dtype, arg.__class__, arg)
        node = table.get(key)
        if node is not None:
            return node
        node = object.__new__(cls)
        node.op = op
        node.dtype = dtype
        node.src = src
        node.arg = arg
        node.value = None
        shape = _UNSET
        if src and op in SHAPE_OF_FIRST:
            first = src[0]._shape
            if first is not _UNSET and first:
                shape = first
        node._shape = shape
        node._ranges = None
        node._below = None
        node._buffer = None
        node.bounds = None if dtype.is_float or dtype is dtypes.void else bounds_of(op, dtype, src, arg)
        if HAS_THREADS:
            with lock:  # not while another thread collects
                node = table.setdefault(key, node)
                if len(table) > generations.limit:
                    collect_young()
        else:
            table[key] = node
            if len(table) > generations.limit:
                collect_young()
        return node

    @staticmethod
    def buffer_of(buffer: Any, dtype: DType) -> UOp:
        """A new BUFFER over a runtime buffer.

        It is not interned, for it has no sources: it goes, and its memory, with the last that holds it.
        """
        shape = getattr(buffer, "shape", (buffer.size,))
        bounds = None if dtype.is_float else (dtype.min, dtype.max)
        return UOp._apart(Ops.BUFFER, dtype, (), buffer, shape, bounds)

    @staticmethod
    def _apart(op: Ops, dtype: DType, src: tuple[UOp, ...], arg: Any, shape: Shape, bounds: Any) -> UOp:
        """A node that is not interned."""
        node = object.__new__(UOp)
        node.op, node.dtype, node.src, node.arg = op, dtype, src, arg
        node.value = node._ranges = node._below = node._buffer = None
        node._shape, node.bounds = shape, bounds
        return node

    def __copy__(self) -> UOp:
        return self  # immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> UOp:
        return self

    def __reduce__(self) -> Any:
        if self.dtype is not dtypes.index or not self._is_size():
            raise TypeError("a UOp is not pickled, but for Variables: serialise a Program instead")
        return UOp, (self.op, self.dtype, self.src, self.arg)

    def __repr__(self) -> str:
        if self.dtype is dtypes.index and self.op in SIZES and self._is_size():
            return size_text(self) + (f"={self.src[1].arg}" if self.op is Ops.BIND else "")
        arg = "" if self.arg is None else f", {self.arg!r}"
        return f"UOp({self.op.name}, {self.dtype}, [{', '.join(s.op.name for s in self.src)}]{arg})"

    def replace(self, **changes: Any) -> UOp:
        """This node with some of op, dtype, src, arg changed."""
        get = changes.get
        return UOp(get("op", self.op), get("dtype", self.dtype), get("src", self.src), get("arg", self.arg))

    def over(self, src: tuple[UOp, ...]) -> UOp:
        """This op over other sources; this node if they are its own."""
        if src == self.src:
            return self
        node = UOp(self.op, self.dtype, src, self.arg)
        if watch.origins is not None:
            watch.origins.pass_on(self, node)
        return node

    # --- constants and variables ----------------------------------------------------------------------

    @staticmethod
    def const(dtype: DType, value: Any) -> UOp:
        """A scalar constant, wrapped into integer dtypes as a cast would."""
        if value.__class__ is not float or not dtype.is_float:
            value = dtype.cast(value)
        if dtype.is_float:
            if value != value:
                value = _NAN
            elif value == 0.0:
                value = _NEGATIVE_ZERO if math.copysign(1.0, value) < 0 else 0.0
        return UOp(Ops.CONST, dtype, (), value)

    @staticmethod
    def index(value: Sint) -> UOp:
        """`value` as a UOp of dtype index."""
        return value if isinstance(value, UOp) else UOp(Ops.CONST, dtypes.index, (), int(value))

    @staticmethod
    def variable(name: str, lo: int, hi: int, dtype: str = "") -> UOp:
        """An unbound symbolic integer. `dtype`: what it is as a number among Tensors, if not the default."""
        return UOp(Ops.DEFINE_VAR, dtypes.index, (), Var(name, lo, hi, dtype))

    def bind(self, value: int) -> UOp:
        """This variable, bound to `value` for the next run. Raises ArgumentError when out of bounds."""
        if self.op is not Ops.DEFINE_VAR:
            raise ArgumentError(f"bind: expected a Variable, got {self.op}")
        if not self.arg.lo <= value <= self.arg.hi:
            raise ArgumentError(f"bind: {self.arg.name} expected {self.arg.lo} to {self.arg.hi}, got {value}")
        return UOp(Ops.BIND, self.dtype, (self, UOp.index(value)))

    def unbind(self) -> tuple[UOp, int]:
        """A BIND's variable and its value."""
        return self.src[0], self.src[1].arg

    def sink(*src: UOp) -> UOp:
        """A SINK of nodes: `UOp.sink(a, b)` and `a.sink(b)` are the same."""
        return UOp(Ops.SINK, dtypes.void, src)

    @staticmethod
    def range(size: Sint, axis: int | Axis, kind: AxisKind = AxisKind.LOOP) -> UOp:
        """The RANGE 0 to `size - 1` of an axis: any, or number `axis` of a kernel as it is scheduled."""
        axis = axis if isinstance(axis, Axis) else Axis((axis,), kind)
        return UOp(Ops.RANGE, dtypes.index, (UOp.index(size),), axis)

    def const_like(self, value: Any, dtype: DType | None = None) -> UOp:
        """A constant of this node's shape and, unless told, dtype."""
        out, shape = UOp.const(dtype or self.dtype, value), self.shape
        return out if not shape else out.reshape((1,) * len(shape)).expand(shape)

    @property
    def is_const(self) -> bool:
        return self.op is Ops.CONST

    # --- numbers ---------------------------------------------------------------------------------------

    def _is_size(self) -> bool:
        """Whether this is a symbolic integer over Variables, short enough to be shown as such."""
        order = self.toposort()
        return len(order) < 64 and all(n.op in SIZES or n.is_const for n in order)

    def __bool__(self) -> bool:
        """True; of a symbolic integer whether it is not 0, of a comparison of such whether it holds.

        Raises ArgumentError when that depends on the values of Variables.
        """
        op, dtype = self.op, self.dtype
        if dtype is dtypes.index and op in SIZES:
            return self.bounds[0] > 0 or self.bounds[1] < 0 or bool(self._number("bool()"))  # type: ignore[index]
        if op not in GroupOp.Comparison:
            return True
        a, b = self.src
        if a.dtype is dtypes.bool and a.op in GroupOp.Comparison and b.is_const and op is Ops.CMPNE:
            return bool(a) is not b.arg
        if a.dtype is not dtypes.index:
            return True
        difference = canonical(a - b)
        lo, hi = (difference, difference) if isinstance(difference, int) else difference.bounds
        if op is Ops.CMPLT and (hi < 0 or lo >= 0):
            return bool(hi < 0)
        if op is not Ops.CMPLT and (hi < 0 or lo > 0 or lo == hi):
            return (lo == hi == 0) is (op is Ops.CMPEQ)
        raise ArgumentError(
            f"comparison of {size_text(a)} and {size_text(b)}: expected one that holds for all values of the "
            "Variables or for none: compare what they are bound to, .unbind()[1]"
        )

    def _number(self, what: str) -> Any:
        lo, hi = self.vmin, self.vmax
        if lo != hi or not (self.is_const or self.bounds is not None):
            raise ArgumentError(
                f"{what}: expected a symbolic value with one possible value, got {self!r} from {lo} to {hi}: "
                "use what its Variable is bound to, .unbind()[1]"
            )
        return lo

    def __int__(self) -> int:
        """The value. Raises ArgumentError when there are several that Variables allow."""
        return int(self._number("int()"))

    def __float__(self) -> float:
        """The value. Raises ArgumentError when there are several that Variables allow."""
        return float(self._number("float()"))

    # --- bounds ----------------------------------------------------------------------------------------

    @property
    def vmin(self) -> Any:
        return self.bounds[0] if self.bounds is not None else (self.arg if self.is_const else self.dtype.min)

    @property
    def vmax(self) -> Any:
        return self.bounds[1] if self.bounds is not None else (self.arg if self.is_const else self.dtype.max)

    # --- arithmetic (both stages) -----------------------------------------------------------------------
    # Python's operators take nodes and numbers; what else comes (a Tensor) may know what to do itself.

    def _other(self, x: Any) -> UOp:
        return x if isinstance(x, UOp) else UOp.const(self.dtype, x)

    def alu(self, op: Ops, *others: UOp) -> UOp:
        """An elementwise op of this node and `others`, all of one shape. Comparisons give bool."""
        if op in GroupOp.Comparison:
            return UOp(op, dtypes.bool, (self, *others))
        return UOp(op, others[0].dtype if op is Ops.WHERE else self.dtype, (self, *others))

    __add__, __radd__ = _operator(Ops.ADD), _operator(Ops.ADD, reverse=True)
    __mul__, __rmul__ = _operator(Ops.MUL), _operator(Ops.MUL, reverse=True)
    __floordiv__, __rfloordiv__ = _operator(Ops.IDIV), _operator(Ops.IDIV, reverse=True)
    __mod__, __rmod__ = _operator(Ops.MOD), _operator(Ops.MOD, reverse=True)
    __and__, __rand__ = _operator(Ops.AND), _operator(Ops.AND, reverse=True)
    __or__, __ror__ = _operator(Ops.OR), _operator(Ops.OR, reverse=True)
    __xor__, __rxor__ = _operator(Ops.XOR), _operator(Ops.XOR, reverse=True)
    __lshift__, __rlshift__ = _operator(Ops.SHL), _operator(Ops.SHL, reverse=True)
    __rshift__, __rrshift__ = _operator(Ops.SHR), _operator(Ops.SHR, reverse=True)
    __lt__, __gt__ = _operator(Ops.CMPLT), _operator(Ops.CMPLT, reverse=True)

    def __sub__(self, x: Any) -> UOp:
        return self + (-x) if _is_operand(x) else NotImplemented

    def __rsub__(self, x: Any) -> UOp:
        return x + (-self) if _is_operand(x) else NotImplemented

    def __neg__(self) -> UOp:
        return self * -1

    def __truediv__(self, x: Any) -> UOp:
        """The quotient, in floats."""
        return _ratio(self, x) if _is_operand(x) else NotImplemented

    def __rtruediv__(self, x: Any) -> UOp:
        return _ratio(x, self) if _is_operand(x) else NotImplemented

    def __pow__(self, x: Any) -> UOp:
        """A product of as many factors. Raises ArgumentError for a negative number of them."""
        if not isinstance(x, int):
            return NotImplemented
        if x < 0:
            raise ArgumentError(f"power of {self!r}: expected an exponent of at least 0, got {x}: use 1 / x")
        return prod([self] * (x - 1)) * self if x else UOp.const(self.dtype, 1)

    def __ge__(self, x: Any) -> UOp:
        return (self < x).logical_not() if _is_operand(x) else NotImplemented

    def __le__(self, x: Any) -> UOp:
        return (self > x).logical_not() if _is_operand(x) else NotImplemented

    def ne(self, x: Any) -> UOp:
        return UOp(Ops.CMPNE, dtypes.bool, (self, self._other(x)))

    def eq(self, x: Any) -> UOp:
        return UOp(Ops.CMPEQ, dtypes.bool, (self, self._other(x)))

    def logical_not(self) -> UOp:
        return self.ne(True)

    def maximum(self, x: Any) -> UOp:
        return UOp(Ops.MAX, self.dtype, (self, self._other(x)))

    def where(self, a: Any, b: Any) -> UOp:
        """`a` where this bool holds, else `b`; one of them is a UOp."""
        a = a if isinstance(a, UOp) else UOp.const(b.dtype, a)
        b = b if isinstance(b, UOp) else UOp.const(a.dtype, b)
        return UOp(Ops.WHERE, a.dtype, (self, a, b))

    def cast(self, dtype: DType) -> UOp:
        return self if dtype is self.dtype else UOp(Ops.CAST, dtype, (self,))

    def bitcast(self, dtype: DType) -> UOp:
        return self if dtype is self.dtype else UOp(Ops.BITCAST, dtype, (self,))

    # --- the tensor graph ----------------------------------------------------------------------------------
    # A movement of a movement stays two nodes: a gradient finds a tensor by its node, which must not be
    # bypassed.

    @property
    def shape(self) -> Shape:
        """The shape of a tensor-graph node. Raises InternalError for kernel nodes that have none."""
        shape = self._shape
        return self._find_shape() if shape is _UNSET else shape

    def _find_shape(self) -> Shape:
        for s in self.src:
            if s._shape is _UNSET:
                break
        else:
            self._shape = shape_of(self)
            return self._shape
        pending = [self]  # iterative: graphs may be tens of thousands of nodes deep
        while pending:
            node = pending[-1]
            for s in node.src:
                if s._shape is _UNSET:
                    pending.append(s)
                    break
            else:
                pending.pop()
                node._shape = shape_of(node)
        return self._shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Sint:
        return prod(self.shape)

    def reshape(self, shape: Shape) -> UOp:
        """The same elements in row-major order as `shape` (every size given)."""
        shape = canonical_shape(shape)
        if shape == self.shape:
            return self
        out = UOp(Ops.RESHAPE, self.dtype, (self,), shape)
        out._shape = shape
        return out

    def expand(self, shape: Shape) -> UOp:
        """Sizes of 1 repeated to `shape`."""
        shape = canonical_shape(shape)
        if shape == self.shape:
            return self
        out = UOp(Ops.EXPAND, self.dtype, (self,), shape)
        out._shape = shape
        return out

    def permute(self, axes: tuple[int, ...]) -> UOp:
        """Axis i of the result is axis `axes[i]`."""
        return self if axes == tuple(range(len(axes))) else UOp(Ops.PERMUTE, self.dtype, (self,), axes)

    def pad(self, arg: tuple[tuple[Sint, Sint], ...]) -> UOp:
        """Zeros (False) added before and after each axis."""
        arg = _canonical_pairs(arg)
        return self if all(p == (0, 0) for p in arg) else UOp(Ops.PAD, self.dtype, (self,), arg)

    def shrink(self, arg: tuple[tuple[Sint, Sint], ...]) -> UOp:
        """Elements `lo` (included) to `hi` (not) of each axis."""
        arg = _canonical_pairs(arg)
        same = all(lo == 0 and hi == s for (lo, hi), s in zip(arg, self.shape, strict=True))
        return self if same else UOp(Ops.SHRINK, self.dtype, (self,), arg)

    def flip(self, axes: tuple[int, ...]) -> UOp:
        """The listed axes reversed."""
        return UOp(Ops.FLIP, self.dtype, (self,), tuple(sorted(axes))) if axes else self

    def shear(self, arg: Shear) -> UOp:
        """Windows of one axis that move along another; all of them within it."""
        arg = Shear(arg.axis, arg.along, *[canonical(s) for s in (arg.start, arg.step, arg.size)])
        return UOp(Ops.SHEAR, self.dtype, (self,), arg)

    def reduce_axis(self, op: Ops, axes: tuple[int, ...]) -> UOp:
        """Combine with ADD, MUL or MAX along `axes`, kept as size 1. Axes of size 1 need no work."""
        shape = self.shape
        axes = tuple(sorted([a for a in axes if shape[a] != 1]))
        if not axes:
            return self
        out = UOp(Ops.REDUCE_AXIS, self.dtype, (self,), Reduction(op, axes))
        if out._shape is _UNSET:
            out._shape = tuple([1 if i in axes else n for i, n in enumerate(shape)])
        return out

    def scan_axis(self, op: Ops, axis: int, initial: UOp | None = None, factor: UOp | None = None) -> UOp:
        """Running values: y[i] = y[i-1] op self[i] along `axis` for ADD, MUL and MAX; for MULACC
        y[i-1] * factor[i] + self[i]. `initial`: what comes before the first, of this shape and the same all
        along the axis (None: what leaves it as it is)."""
        if initial is None:
            unchanged = Ops.ADD if op is Ops.MULACC else op
            initial = UOp.const(self.dtype, identity_element(unchanged, self.dtype))
        src = (self, initial) if factor is None else (self, initial, factor)
        return UOp(Ops.SCAN_AXIS, self.dtype, src, Reduction(op, (axis,)))

    def contiguous(self) -> UOp:
        """This value in a buffer of its own."""
        stored = self.op in (Ops.CONTIGUOUS, Ops.BUFFER, Ops.AFTER)
        return self if stored else self.clone()

    def clone(self) -> UOp:
        """This value in memory of its own, even if it is stored already."""
        return UOp(Ops.CONTIGUOUS, self.dtype, (self,))

    def detach(self, arg: Leaf | Spent | Hooks | None = None) -> UOp:
        """This value, cut from gradients; or marked as what `arg` is.

        Marks with hooks, and marks over them, are not interned: the intern table would hold a Tensor with
        these nodes that a hook refers to for ever.
        """
        if isinstance(arg, Hooks) or isinstance(self.arg, Hooks):
            return UOp._apart(Ops.DETACH, self.dtype, (self,), arg, self.shape, self.bounds)
        return UOp(Ops.DETACH, self.dtype, (self,), arg)

    def copy_to(self, device: str | Sharding) -> UOp:
        """This value on `device`, or in parts on several."""
        return UOp(Ops.COPY, self.dtype, (self,), device)

    def assign(self, value: UOp) -> UOp:
        """The memory under this node (movement ops over a BUFFER or AFTER) once `value` is written there."""
        memory, _ = self.movements()
        return UOp(Ops.AFTER, memory.dtype, (memory, UOp(Ops.ASSIGN, self.dtype, (self, value))))

    def movements(self) -> tuple[UOp, list[UOp]]:
        """The node under this one's movement ops, and these ops, the innermost first."""
        node, ops = self, []
        while node.op in GroupOp.Movement:
            ops.append(node)
            node = node.src[0]
        ops.reverse()
        return node, ops

    @property
    def buffer(self) -> UOp:
        """The BUFFER of which this node is a version."""
        versions, node = [], self  # kept for each: of a thousand lazy writes every version is asked
        while node.op is Ops.AFTER and node._buffer is None:
            versions.append(node)
            node = node.src[0]
        buffer = node._buffer or node
        for version in versions:
            version._buffer = buffer
        return buffer

    @property
    def base(self) -> UOp:
        """The node under this one's RESHAPEs."""
        node = self
        while node.op is Ops.RESHAPE:
            node = node.src[0]
        return node

    # --- kernels -------------------------------------------------------------------------------------------

    @property
    def ranges(self) -> frozenset[UOp]:
        """The RANGEs that this node depends on and that have not ended: the loops it is inside of."""
        if self.op is Ops.RANGE:  # not kept: a node that holds itself is never freed
            return frozenset((self,)).union(*[s.ranges for s in self.src])
        if self._ranges is None:
            pending = [self]
            while pending:
                node = pending[-1]
                missing = [s for s in node.src if s._ranges is None and s.op is not Ops.RANGE]
                if missing:
                    pending.extend(missing)
                else:
                    pending.pop()
                    node._ranges = _ranges_of(node)
        return self._ranges  # type: ignore[return-value]

    @property
    def memory(self) -> UOp:
        """What an INDEX points into: a PARAM, DEFINE_REG or STAGE, without the effects it waits for."""
        node = self.src[0]
        while node.op is Ops.AFTER:
            node = node.src[0]
        return node

    # --- kernels written by hand, in tinygrad's words (`schedule/custom_kernel.py`)
    #
    #     i, k = UOp.range(4, 0), UOp.range(8, 1)
    #     c[i].store((a[i, k] * b[k]).reduce(k)).end(i).sink()

    def __getitem__(self, indices: Any) -> UOp:
        """An element of memory: one index, an int or a UOp, for each axis. It is loaded where it is used.

        Raises ArgumentError for another number of indices.
        """
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != len(self.shape):
            raise ArgumentError(f"kernel: {len(given)} indices into {self.shape}: expected {len(self.shape)}")
        positions = []
        for i in given:
            if isinstance(i, bool) or not isinstance(i, (int, UOp)):
                raise ArgumentError(f"kernel: expected an index that is an int or a UOp, got {i!r}")
            positions.append(i.cast(dtypes.index) if isinstance(i, UOp) else UOp.index(i))
        return UOp(Ops.INDEX, self.dtype, (self, *positions))

    def load(self) -> UOp:
        """The value of an element. An element that is used as a value is loaded without it, too."""
        return UOp(Ops.LOAD, self.dtype, (self,))

    def store(self, value: Any) -> UOp:
        """Write a number or a UOp to an element."""
        value = value if isinstance(value, UOp) else UOp.const(self.dtype, value)
        return UOp(Ops.STORE, dtypes.void, (self, value))

    def end(self, *ranges: UOp) -> UOp:
        """Repeat this for all values of `ranges`, which are loops, outermost first."""
        return UOp(Ops.END, dtypes.void, (self, *ranges)) if ranges else self

    def reduce(self, *ranges: UOp, arg: Ops = Ops.ADD) -> UOp:
        """Combine the values of this over `ranges` with ADD, MUL or MAX."""
        return UOp(Ops.REDUCE, self.dtype, (self, *ranges), arg)

    def clip(self, low: Any, high: Any) -> UOp:
        """This number, or the nearest one from `low` to `high`."""
        return -(-self.maximum(low)).maximum(-high)

    def numel(self) -> Any:
        """The number of elements."""
        return prod(self.shape)

    def flatten(self) -> UOp:
        """All elements along one axis."""
        return self.reshape((self.numel(),))

    # --- walks ---------------------------------------------------------------------------------------------

    def toposort(self, gate: Callable[[UOp], bool] | None = None) -> list[UOp]:
        """This node and all it is made of, sources before consumers. Sources of nodes that fail `gate` are
        left out."""
        if gate is None and self.op in _KERNELS:
            if self._below is None:  # without itself: a node that holds itself is never freed
                self._below = self._collect_sources(None)[:-1]
            return [*self._below, self]
        return self._collect_sources(gate)

    def _collect_sources(self, gate: Callable[[UOp], bool] | None) -> list[UOp]:
        order: dict[UOp, None] = {}
        stack = [self]
        while stack:
            node = stack[-1]
            if node not in order:
                size = len(stack)
                for s in node.src[::-1]:
                    if s not in order:
                        stack.append(s)
                if len(stack) > size:
                    if gate is None or gate(node):
                        continue
                    del stack[size:]
                order[node] = None
            stack.pop()
        return list(order)

    def substitute(self, replacements: dict[UOp, UOp]) -> UOp:
        """This graph with some nodes replaced."""
        done = dict(replacements)
        for node in self.toposort(lambda n: n not in replacements):
            if node in done:
                continue
            src = tuple([done[s] for s in node.src])
            done[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        return done[self]

    def variables(self) -> list[UOp]:
        """The DEFINE_VARs of this graph, by name."""
        return sorted((n for n in self.toposort() if n.op is Ops.DEFINE_VAR), key=lambda n: n.arg)

    def __iter__(self) -> Iterator[UOp]:
        raise TypeError("a UOp is not iterable")


_NO_RANGES: frozenset[UOp] = frozenset()
_FIRST_ENDED = {
    Ops.END: 1,
    Ops.REDUCE: 1,
    Ops.STAGE: 2,
    Ops.MATMUL: 2,
}  # the first source that is a RANGE it ends


def _ranges_of(node: UOp) -> frozenset[UOp]:
    ended = _FIRST_ENDED.get(node.op, len(node.src))
    if node.op is Ops.WMMA:
        ended = 3 + len(node.arg.c.elements)
    out = _NO_RANGES
    for s in node.src[:ended]:
        ranges = s.ranges if s.op is Ops.RANGE else s._ranges
        if ranges is not out and ranges:
            if not out or out < ranges:
                out = ranges
            elif not ranges <= out:
                out = out | ranges
    return out.difference(node.src[ended:]) if ended < len(node.src) else out


def _canonical_pairs(arg: tuple[tuple[Sint, Sint], ...]) -> tuple[tuple[Sint, Sint], ...]:
    for lo, hi in arg:
        if lo.__class__ is not int or hi.__class__ is not int:
            return tuple([(canonical(lo), canonical(hi)) for lo, hi in arg])
    return arg
