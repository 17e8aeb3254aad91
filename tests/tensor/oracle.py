"""An independent judge: evaluates a tensor graph with numpy, node by node.

Slow, obvious, and only for tests.
"""

from __future__ import annotations

import numpy as np

from polygrad.uop.ops import GroupOp, Ops

_NUMPY = {"bfloat16": "float32", "index": "int64"}


def dtype_of(dtype):
    """numpy's dtype for ours; bfloat16 is held in float32."""
    return np.dtype(_NUMPY.get(str(dtype), str(dtype)))


def evaluate(root):
    """The value of a node as a numpy array."""
    values = {}
    with np.errstate(all="ignore"):
        for node in root.toposort(lambda n: n.value is None or n.value.arg.is_overwritten):
            if node.value is not None and not node.value.arg.is_overwritten:
                values[node] = _buffer(node.value).reshape(node.shape)
            else:
                values[node] = np.asarray(_evaluate(node, [values[s] for s in node.src]))
                assert values[node].shape == node.shape, (node, values[node].shape, node.shape)
    return values[root]


def _buffer(node):
    raw = np.frombuffer(node.arg.read(), np.uint8)
    if node.dtype == "bfloat16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return raw.view(dtype_of(node.dtype))


def _evaluate(node, src):
    op, arg, dtype = node.op, node.arg, dtype_of(node.dtype)
    match op:
        case Ops.BUFFER:
            return _buffer(node)
        case Ops.CONST:
            return np.array(arg).astype(dtype) if node.dtype.is_float else np.array(arg, dtype)
        case Ops.ARANGE:
            return np.arange(arg, dtype=dtype)
        case Ops.RESHAPE:
            return src[0].reshape(arg)
        case Ops.EXPAND:
            return np.broadcast_to(src[0], arg)
        case Ops.PERMUTE:
            return src[0].transpose(arg)
        case Ops.PAD:
            return np.pad(src[0], arg)
        case Ops.SHRINK:
            return src[0][tuple(slice(lo, hi) for lo, hi in arg)]
        case Ops.FLIP:
            return np.flip(src[0], arg)
        case Ops.REDUCE_AXIS:
            fn = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum}[arg.op]
            if node.dtype == "bool":
                fn = {Ops.ADD: np.logical_or, Ops.MUL: np.logical_and, Ops.MAX: np.logical_or}[arg.op]
            if dtype.kind == "f" and arg.op is not Ops.MAX:
                return fn.reduce(src[0].astype(np.float64), axis=arg.axes, keepdims=True).astype(dtype)
            return fn.reduce(src[0], axis=arg.axes, keepdims=True, dtype=None if arg.op is Ops.MAX else dtype)
        case Ops.SCAN_AXIS:
            return scan(arg.op, arg.axes[0], *src).astype(dtype)
        case Ops.SHEAR:
            x, moved = np.moveaxis(src[0], (arg.axis, arg.along), (0, 1)), []
            for k in range(x.shape[1]):
                first = arg.start + arg.step * k
                moved.append(x[first : first + arg.size, k])
            return np.moveaxis(np.stack(moved, 1), (0, 1), (arg.axis, arg.along))
        case Ops.CONTIGUOUS | Ops.DETACH | Ops.NOOP | Ops.COPY:
            return src[0]
        case Ops.ASSIGN:
            return src[1]
        case Ops.CAST:
            return cast(src[0], node.dtype)
        case Ops.BITCAST:
            return src[0].view(dtype)
        case Ops.THREEFRY:
            return threefry(src[0], src[1])
    if node.op in GroupOp.ALU:
        out = _ALU[op](*src)
        return round_bfloat16(out) if node.dtype == "bfloat16" else np.asarray(out).astype(dtype)
    raise AssertionError(f"{op} in a tensor graph")


def scan(op, axis, x, initial, factor=None):
    """Running values along `axis`, one after the other."""
    x = np.moveaxis(x, axis, 0)
    before = np.moveaxis(np.broadcast_to(initial, np.moveaxis(x, 0, axis).shape), axis, 0)[0]
    out = []
    for i, now in enumerate(x):
        if op is Ops.MULACC:
            before = before * np.moveaxis(factor, axis, 0)[i] + now
        else:
            before = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum}[op](before, now)
        out.append(before)
    return np.moveaxis(np.stack(out), 0, axis)


def cast(x, to):
    """Conversion as the project defines it: floats saturate into integers, NaN gives 0."""
    if to == "bool":
        return x != 0
    if x.dtype.kind == "f" and to.is_int:
        t = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
        out = np.array(
            [int(v) if np.isfinite(v) else (to.max if v > 0 else to.min) for v in t.ravel()], dtype=object
        )
        return np.clip(out, to.min, to.max).reshape(x.shape).astype(dtype_of(to))
    out = x.astype(dtype_of(to))
    return round_bfloat16(out) if to == "bfloat16" else out


def round_bfloat16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), np.float32(np.nan), rounded).astype(np.float32)


def threefry(counter, key):
    """threefry2x32, 20 rounds (Salmon et al., 2011), the low word first."""
    x = [(counter & 0xFFFFFFFF).astype(np.uint32), (counter >> np.uint64(32)).astype(np.uint32)]
    k = [(key & 0xFFFFFFFF).astype(np.uint32), (key >> np.uint64(32)).astype(np.uint32)]
    k.append(k[0] ^ k[1] ^ np.uint32(0x1BD11BDA))
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    x = [x[0] + k[0], x[1] + k[1]]
    for i in range(5):
        for r in rotations[i % 2]:
            x[0] = x[0] + x[1]
            x[1] = ((x[1] << np.uint32(r)) | (x[1] >> np.uint32(32 - r))) ^ x[0]
        x = [x[0] + k[(i + 1) % 3], x[1] + k[(i + 2) % 3] + np.uint32(i + 1)]
    return x[0].astype(np.uint64) | (x[1].astype(np.uint64) << np.uint64(32))


def _idiv(a, b):
    return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b)))


def _mod(a, b):
    return np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b)))


def _max(a, b):
    return a | b if a.dtype == bool else np.maximum(a, b)


_ALU = {
    Ops.EXP2: np.exp2,
    Ops.LOG2: np.log2,
    Ops.SIN: np.sin,
    Ops.SQRT: np.sqrt,
    Ops.RECIPROCAL: lambda a: 1 / a,
    Ops.FDIV: np.divide,
    Ops.TRUNC: np.trunc,
    Ops.ADD: np.add,
    Ops.MUL: np.multiply,
    Ops.SHL: np.left_shift,
    Ops.SHR: np.right_shift,
    Ops.IDIV: _idiv,
    Ops.MOD: _mod,
    Ops.MAX: _max,
    Ops.CMPLT: np.less,
    Ops.CMPNE: np.not_equal,
    Ops.CMPEQ: np.equal,
    Ops.XOR: np.bitwise_xor,
    Ops.OR: np.bitwise_or,
    Ops.AND: np.bitwise_and,
    Ops.WHERE: np.where,
    Ops.MULACC: lambda a, b, c: a * b + c,
    Ops.POW: np.power,
}
