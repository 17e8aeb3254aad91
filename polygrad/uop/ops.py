"""The op vocabulary: tinygrad's names, which are the field's. One enum, and the groups that passes use.

The order of the members is part of the language: it breaks ties when a kernel is linearised.
"""

from __future__ import annotations

from enum import IntEnum, auto


class Ops(IntEnum):
    """What a UOp does. `node.py` documents the sources and argument of each."""

    # structure
    SINK = auto()
    AFTER = auto()
    # definitions
    PARAM = auto()
    DEFINE_VAR = auto()
    BIND = auto()
    DEFINE_REG = auto()
    # memory
    INDEX = auto()
    LOAD = auto()
    STORE = auto()
    # unary
    CAST = auto()
    BITCAST = auto()
    EXP2 = auto()
    LOG2 = auto()
    SIN = auto()
    SQRT = auto()
    RECIPROCAL = auto()
    NEG = auto()
    TRUNC = auto()
    # binary
    ADD = auto()
    MUL = auto()
    SHL = auto()
    SHR = auto()
    IDIV = auto()
    MAX = auto()
    MOD = auto()
    CMPLT = auto()
    CMPNE = auto()
    CMPEQ = auto()
    XOR = auto()
    OR = auto()
    AND = auto()
    THREEFRY = auto()
    SUB = auto()
    FDIV = auto()
    POW = auto()
    # ternary
    WHERE = auto()
    MULACC = auto()
    # loops
    RANGE = auto()
    END = auto()
    CONST = auto()
    # tensor graph only
    ARANGE = auto()
    BUFFER = auto()
    CONTIGUOUS = auto()
    DETACH = auto()
    NOOP = auto()
    COPY = auto()
    ASSIGN = auto()
    RESHAPE = auto()
    PERMUTE = auto()
    EXPAND = auto()
    PAD = auto()
    SHRINK = auto()
    FLIP = auto()
    SHEAR = auto()
    REDUCE_AXIS = auto()
    SCAN_AXIS = auto()
    FOR = auto()
    REDUCE = auto()
    SCAN = auto()
    # memory of a kernel's own
    STAGE = auto()
    # ternary, of words that hold several numbers
    DOT = auto()
    # a product of matrices of such words
    MATMUL = auto()
    # workgroups
    SPECIAL = auto()
    BARRIER = auto()
    COMMIT = auto()
    # matrices that lanes hold together
    WMMA = auto()
    # what another lane of a subgroup holds
    SHUFFLE_XOR = auto()

    __hash__ = int.__hash__  # an Enum hashes its name in Python; every UOp look-up hashes an op

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


class GroupOp:
    """Sets of ops that behave alike."""

    Transcendental = frozenset({Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.POW})
    Unary = frozenset({Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL, Ops.NEG, Ops.TRUNC})
    Binary = frozenset({
        Ops.ADD, Ops.MUL, Ops.SHL, Ops.SHR, Ops.IDIV, Ops.MAX, Ops.MOD, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ,
        Ops.XOR, Ops.OR, Ops.AND, Ops.THREEFRY, Ops.SUB, Ops.FDIV, Ops.POW,
    })  # fmt: skip
    Ternary = frozenset({Ops.WHERE, Ops.MULACC, Ops.DOT})
    ALU = Unary | Binary | Ternary
    Elementwise = ALU | {Ops.CAST, Ops.BITCAST}
    Movement = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND, Ops.PAD, Ops.SHRINK, Ops.FLIP, Ops.SHEAR})
    Comparison = frozenset({Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ})
    Commutative = frozenset({Ops.ADD, Ops.MUL, Ops.MAX, Ops.CMPNE, Ops.CMPEQ, Ops.XOR, Ops.AND, Ops.OR})
    Reduce = frozenset({Ops.ADD, Ops.MUL, Ops.MAX})
    Defines = frozenset({Ops.PARAM, Ops.DEFINE_REG, Ops.STAGE})
    Memory = frozenset({Ops.BUFFER, Ops.AFTER})
