"""Calls of functions of elements: mathematics, activations, comparisons, bits, casts."""

from __future__ import annotations

import itertools
import math

from proofs.calls import BOOLS, SPECIALS, Calls, integers, laid, numbers
from tensor.tables.rows import bools, floats, given, ints

CALLS = Calls()
ALL = (*numbers(), *integers(), *BOOLS, SPECIALS)
REAL = (*numbers(), *integers(), SPECIALS)

# --- one operand
CALLS.add(
    "abs absolute neg negative square sign exp exp2 expm1 sin cos tan tanh atan arctan asinh arcsinh sinh cosh "
    "erf erfc sigmoid isnan isinf isfinite isneginf isposinf signbit logical_not deg2rad rad2deg sinc relu",
    "x", *ALL,
)  # fmt: skip
CALLS.add("i0", "x", *numbers(), given((0.0, 0.5, -2.5, 20.0, -60.0)))
CALLS.add(
    "floor ceil trunc fix round",
    "x",
    *numbers(),
    *integers(),
    SPECIALS,
    given((0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997)),
)
CALLS.add("frac", "x", *numbers(), given((0.0, -0.0, 2.5, -2.5)))
CALLS.add(
    "log log2 log10 log1p sqrt rsqrt reciprocal", "x", *numbers(0.1, 5.0), *integers(1, 9), SPECIALS, *BOOLS
)
CALLS.add(
    "asin arcsin acos arccos atanh arctanh erfinv",
    "x",
    *numbers(-0.9, 0.9),
    SPECIALS,
    bools(3, 4),
    tolerance=1e-4,
)
CALLS.add("acosh arccosh", "x", *numbers(1.1, 6.0), ints(3, 4, low=1, high=9), tolerance=1e-4)
CALLS.add("acosh arccosh", "x", SPECIALS, gradient=False, tolerance=1e-4)
CALLS.add("logit", ("x", "x, 0.1"), *numbers(0.05, 0.95))
CALLS.add("lgamma", "x", *numbers(0.2, 9.0), given((1.0, 2.0, 40.0, math.inf)), tolerance=1e-4)
CALLS.add("digamma", "x", *numbers(0.2, 9.0), given((1.0, 2.0, 40.0, math.inf)), tolerance=1e-4)
CALLS.add("polygamma", "=f(1, x)", *numbers(0.3, 9.0), place="torch.", tolerance=2e-4)
CALLS.add("polygamma", "=f(2, x)", *numbers(0.3, 9.0), place="torch", tolerance=2e-4)
CALLS.add("mvlgamma", "x, 2", floats(3, 4, low=1.6, high=5), floats(low=1.6, high=5), tolerance=1e-4)
CALLS.add("nan_to_num", ("x", "x, 1.0", "x, 1.0, 2.0, 3.0"), *numbers(), SPECIALS, ints(3, 4))
CALLS.add("frexp", "x", *numbers(), given((0.0, 1.0, 0.5, -8.0)), gradient=False)
CALLS.add("bitwise_not", "x", *integers(), *BOOLS)
CALLS.add("isreal is_floating_point", "x", floats(3), ints(3), bools(3))
CALLS.add("contiguous clone detach contiguous_backward", "x", *ALL, gradient=False)
CALLS.add("clone contiguous", "x", *numbers())
CALLS.add(
    "bool int long short half double float bfloat16",
    "x",
    *numbers(),
    *integers(),
    *BOOLS,
    given((0.0, -0.0, 1.9, -1.9, 99.5)),
    gradient=False,
)
CALLS.add(
    "cast", ("x, dt.int32", "x, dt.int64"), floats(3, 4), given((0.0, -0.0, 1.9, -1.9, 99.5)), gradient=False
)
CALLS.add("half double float", "x", *numbers())
CALLS.add(
    "cast",
    tuple(f"x, dt.{d}" for d in ("float32", "float16", "int32", "int64", "uint8", "bool")),
    *numbers(0, 9),
    *integers(0, 9),
    gradient=False,
)
CALLS.add("cast", ("x, dt.float64", "x, dt.float16"), *numbers())
CALLS.add("bitcast", ("x, dt.int32", "x, dt.uint32"), floats(3, 4), floats(), gradient=False)
CALLS.add("bitcast", "x, dt.float32", ints(3, 4))
CALLS.add("bitcast", "x, dt.int64", floats(3, 3), is_refused=True)
CALLS.add(
    "type_as",
    "x, y",
    *((floats(3, 4), o) for o in (ints(2), bools(2), floats(2, dtype="float64"), ints(2, dtype="int64"))),
    gradient=False,
)
CALLS.add("to", "x, None", floats(3), place="tinygrad")
CALLS.add("to", ("x, dt.float64", "x, 'cpu'"), floats(3, 4), place="torch")

# --- activations
CALLS.add(
    "relu6 hardswish hardsigmoid silu swish quick_gelu mish softsign tanhshrink",
    "x",
    *numbers(-5, 8),
    SPECIALS,
)
CALLS.add("logsigmoid", "x", *numbers(-9, 9), given((math.inf, -math.inf, 0.0, 80.0, -80.0)))
CALLS.add("leaky_relu", ("x", "x, 0.2"), *numbers(), SPECIALS)
CALLS.add("elu celu", ("x", "x, 0.7"), *numbers(), given((math.inf, -math.inf, 0.0, -0.0, 80.0, -80.0)))
CALLS.add("selu", "x", *numbers(), given((math.inf, -math.inf, 0.0, -0.0, 80.0, -80.0)))
CALLS.add(
    "gelu", ("x", "x, approximate='tanh'", "x, approximate='none'"), *numbers(), given((0.0, 12.0, -12.0))
)
CALLS.add("gelu", "x, approximate='erf'", floats(3), is_refused=True)
CALLS.add("hardtanh", ("x", "x, -0.5, 2.0"), *numbers(), SPECIALS, given((-1.0, 1.0, 0.0)))
CALLS.add("hardsigmoid", "x, 0.2, 0.4", floats(3, 4), place="tinygrad")
CALLS.add("hardshrink softshrink", ("x", "x, 0.25"), *numbers(), given((0.5, -0.5, 0.25, -0.25, 0.0)))
CALLS.add("softplus", ("x", "x, 2.0"), *numbers(-9, 9), given((19.0, 21.0, 30.0, -30.0, math.inf, -math.inf)))
CALLS.add("threshold", "x, 0.2, 7.0", *numbers(), given((0.2, 0.0, 0.3)))
CALLS.add(
    "glu",
    ("x", "x, 0", "x, -1"),
    floats(4, 6),
    laid(floats(4, 6), "transposed"),
    floats(4, 6, dtype="float16"),
)
CALLS.add("glu", "x, 1", floats(4, 5), is_refused=True)
CALLS.add("prelu", "x, y", *((x, floats(1)) for x in numbers()[:4]), (floats(2, 4, 3), floats(4)))
CALLS.add("prelu", "x, y", (floats(2, 4, 3), floats(3)), is_refused=True)
CALLS.add(
    "softmax log_softmax softmin",
    ("x, 0", "x, -1", "x, 1"),
    *numbers()[:3],
    floats(3, 4, dtype="float16"),
    given([[1e9, 1, 2], [100, 0, -100]]),
    given([[-math.inf, 1, 2], [-math.inf] * 3]),
)
CALLS.add("softmax log_softmax", "x, 1, dtype=dt.float64", floats(3, 4))
CALLS.add("softmax log_softmax softmin", "x, 2", floats(3, 4), is_refused=True)

# --- two operands
PAIRS = (
    (floats(3, 4), floats(3, 4)), (laid(floats(3, 4), "transposed"), floats(4)), (floats(3, 1), laid(floats(3, 4), "strided")),
    (floats(), floats(3)), (floats(), floats()), (floats(0, 3), floats(3)), (floats(3, 4, dtype="float16"), floats(4, dtype="float16")),
)  # fmt: skip
_few = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 3.5)
_both = list(itertools.product(_few, _few))
SPECIAL_PAIRS = ((given([a for a, _ in _both]), given([b for _, b in _both])),)
POSITIVE = tuple(
    (floats(*a.shape, low=0.3, high=3, dtype=a.dtype), floats(*b.shape, low=0.3, high=3, dtype=b.dtype))
    for a, b in PAIRS
)
WHOLE = tuple(
    (ints(3, 4, dtype=a, low=0 if a[0] == "u" else -9), ints(4, dtype=b, low=1))
    for a, b in (("int32", "int32"), ("int64", "int64"), ("uint8", "uint8"), ("int32", "int64"), ("uint8", "int8"), ("int8", "int32"))
)  # fmt: skip
MIXED = (
    (floats(3, 4), ints(3, 4)),
    (floats(3, 4, dtype="float16"), floats(4)),
    (ints(3, 4), floats(4, dtype="float16")),
    (bools(3, 4), ints(4)),
)
FLAGS = ((bools(3, 4), bools(4)), (bools(), bools()))
DIFFERENT = ((floats(2, 3), floats(2, 2)),)

CALLS.add("add mul multiply", ("x, y",), *PAIRS, *WHOLE, *MIXED, *FLAGS, *SPECIAL_PAIRS)
CALLS.add("sub subtract", "x, y", *PAIRS, *WHOLE, *MIXED, *SPECIAL_PAIRS)
CALLS.add(
    "add sub mul multiply subtract",
    ("x, 2", "x, 2.5"),
    floats(3, 4),
    floats(3, dtype="float16"),
    ints(3, 4),
    ints(3, dtype="uint8"),
)
CALLS.add("div divide true_divide", ("x, y",), *POSITIVE, *WHOLE, *MIXED[:3], *FLAGS, *SPECIAL_PAIRS)
CALLS.add(
    "div divide true_divide", ("x, 2", "x, 2.5"), floats(3, 4), ints(3, 4), ints(3, dtype="uint8"), bools(3)
)
CALLS.add(
    "div divide",
    ("x, y, rounding_mode='floor'", "x, y, rounding_mode='trunc'"),
    *POSITIVE[:3],
    *WHOLE,
    gradient=False,
)
CALLS.add("floor_divide", "x, y", *POSITIVE, *WHOLE, gradient=False)
CALLS.add(
    "remainder mod fmod",
    "x, y",
    *((a, floats(*b.shape, low=0.3, high=3, dtype=b.dtype)) for a, b in PAIRS),
    *WHOLE,
    tolerance=1e-4,
)
CALLS.add(
    "remainder mod fmod",
    "x, y",
    (ints(5, low=-9, high=9), given((2, -2, 3, -3, 4), "int32")),
    (given((5.5, -5.5, 5.5, -5.5)), given((2.0, 2.0, -2.0, -2.0))),
)
CALLS.add("remainder mod fmod", "x, 3", floats(3, 4), ints(3, 4))
CALLS.add(
    "pow",
    "x, y",
    *POSITIVE,
    *SPECIAL_PAIRS,
    (ints(3, 4), ints(3, 4, low=0, high=4)),
    (ints(3, dtype="int64"), ints(3, low=0, high=5, dtype="int64")),
    (floats(3), ints(3)),
    gradient=False,
    tolerance=1e-4,
)
CALLS.add("pow", "x, y", *POSITIVE, tolerance=1e-4)
CALLS.add(
    "pow",
    ("x, 2", "x, 3", "x, 0.5", "x, -1", "x, 0", "x, 2.5"),
    floats(3, 4, low=0.2),
    floats(3, dtype="float16", low=0.5),
    tolerance=1e-4,
)
CALLS.add("pow", ("x, 2", "x, 3"), floats(3, 4, low=-3), ints(3, 4), ints(3, dtype="uint8"))
CALLS.add(
    "maximum minimum",
    "x, y",
    *PAIRS,
    *WHOLE,
    *MIXED,
    *FLAGS,
    *SPECIAL_PAIRS,
    (given((1.0, 2.0, 3.0)), given((1.0, 2.0, 0.0))),
)
CALLS.add(
    "fmax fmin",
    "x, y",
    *PAIRS,
    *WHOLE,
    *FLAGS,
    *SPECIAL_PAIRS,
    (given((1.0, 2.0, 3.0)), given((1.0, 2.0, 0.0))),
)
CALLS.add("atan2 arctan2", "x, y", *PAIRS, *WHOLE, tolerance=1e-4)
CALLS.add("atan2 arctan2 hypot", "x, y", *SPECIAL_PAIRS, gradient=False)
CALLS.add("hypot", "x, y", *PAIRS)
CALLS.add("copysign", "x, y", *PAIRS, *SPECIAL_PAIRS, *WHOLE)
CALLS.add("copysign", ("x, 1", "x, -0.0"), floats(3, 4), SPECIALS)
CALLS.add("nextafter", "x, y", *PAIRS[:6], gradient=False, tolerance=0)
CALLS.add("logaddexp logaddexp2", "x, y", *PAIRS)
CALLS.add("logaddexp logaddexp2", "x, y", *SPECIAL_PAIRS, gradient=False)
CALLS.add("xlogy", "x, y", *POSITIVE, *WHOLE)
CALLS.add("xlogy", "x, y", *SPECIAL_PAIRS, gradient=False)
CALLS.add("heaviside", "x, y", *PAIRS, *SPECIAL_PAIRS, gradient=False)
CALLS.add(
    "gcd lcm",
    "x, y",
    (ints(3, 4), ints(4)),
    (ints(3, 4, dtype="int64"), ints(4, dtype="int64")),
    (ints(5, low=0, dtype="uint8"), ints(5, low=0, dtype="uint8")),
    (ints(), ints()),
)
CALLS.add(
    "eq ne lt le gt ge greater greater_equal less less_equal not_equal",
    "x, y",
    *PAIRS,
    *WHOLE,
    *MIXED,
    *FLAGS,
    *SPECIAL_PAIRS,
)
CALLS.add("eq ne lt le gt ge greater less not_equal", ("x, 1", "x, 0.5"), floats(3, 4), ints(3, 4))
CALLS.add(
    "isclose",
    ("x, y", "x, y, 0.1", "x, y, 0.1, 0.5", "x, y, equal_nan=True"),
    *PAIRS[:4],
    *SPECIAL_PAIRS,
    *WHOLE[:3],
)
CALLS.add(
    "allclose",
    ("x, y", "x, y, 0.1", "x, x", "x, y, 0.1, 9.0", "x, x, equal_nan=True"),
    PAIRS[0],
    (SPECIALS, SPECIALS),
    PAIRS[4],
    (ints(3), ints(3)),
)
CALLS.add("logical_and logical_or logical_xor", "x, y", *PAIRS, *WHOLE, *FLAGS, *SPECIAL_PAIRS)
CALLS.add("bitwise_and bitwise_or bitwise_xor", "x, y", *WHOLE, *FLAGS)
CALLS.add("bitwise_and bitwise_or bitwise_xor", "x, 3", ints(3, 4), ints(3, dtype="uint8"))
CALLS.add("bitwise_and bitwise_or bitwise_xor", "x, x", floats(3), is_refused=True)
CALLS.add("bitwise_not", "x", floats(3), is_refused=True)
CALLS.add(
    "lshift rshift",
    ("x, 2", "x, y"),
    (ints(3, 4, low=0), ints(4, low=0, high=5)),
    (ints(3, low=0, dtype="uint32"), ints(3, low=0, high=5, dtype="uint32")),
)
CALLS.add("lerp", ("x, y, 0.3", "x, y, 0.8", "x, y, y"), *PAIRS[:2], *PAIRS[4:6])
CALLS.add(
    "addcmul addcdiv",
    ("x, y, z", "x, y, z, value=0.5"),
    (floats(3, 4), floats(3, 4), floats(4, low=0.5)),
    (floats(), floats(), floats(low=0.5)),
)
CALLS.add(
    "masked_fill",
    ("x, y, 1.5", "x, y, 2"),
    (floats(3, 4), bools(3, 4)),
    (ints(3, 4), bools(4)),
    (floats(3, 4, dtype="float16"), bools()),
    (laid(floats(3, 4), "transposed"), bools(3, 1)),
)
CALLS.add(
    "where",
    "x, y, z",
    (bools(3, 4), floats(3, 4), floats(4)),
    (bools(3, 4), ints(3, 4), floats(4)),
    (bools(3, 4), floats(3, 4, dtype="float16"), floats(3, 1)),
    (bools(), floats(), ints()),
)
CALLS.add("where", "=f(y, x, z)", (floats(3, 4), bools(3, 4), floats(3, 4)), place="torch")
CALLS.add("where", "=x.where(y, z)", (floats(3, 4), bools(3, 4), floats(3, 4)))
CALLS.add(
    "where",
    ("x, 1.0, y", "x, y, 2", "x, 1, 2", "x, 1.0, 2"),
    (bools(3, 4), floats(3, 4)),
    (bools(3), ints(3)),
)
CALLS.add(
    "clamp clip",
    ("x, -1.0, 1.0", "x, 0.5", "x, None, 0.5", "x, 2.0, 1.0", "x, -1, 1"),
    *numbers()[:5],
    floats(3, 4, dtype="float16"),
    SPECIALS,
    given((-1.0, 1.0, 0.5)),
)
CALLS.add("clamp clip", ("x, 2, 5", "x, 1"), *integers())
CALLS.add("clamp clip", "x, y, z", (floats(3, 4), floats(4), floats(3, 4)), (ints(3), ints(3), ints(3)))
CALLS.add("clamp clip", "x", floats(3), is_refused=True)
CALLS.add(
    "clamp_min clamp_max", ("x, 0.25", "x, 1"), *numbers()[:5], SPECIALS, given((0.25, 1.0)), ints(3, 4)
)
CALLS.add(
    "add sub subtract mul multiply div divide true_divide pow maximum minimum fmax fmin fmod mod remainder eq ne lt le gt ge "
    "copysign logaddexp isclose atan2 hypot xlogy", "x, y", *DIFFERENT, is_refused=True,
)  # fmt: skip
CALLS.add("masked_fill where", "x, y, 1.0", (bools(2, 3), bools(2, 2)), is_refused=True)
