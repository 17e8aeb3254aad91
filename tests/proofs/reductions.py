"""Calls of reductions, cumulative forms, order and counting."""

from __future__ import annotations

import math

from proofs.calls import BOOLS, ROWS, TIES, Calls, integers, laid, numbers
from tensor.tables.rows import bools, floats, given, ints

CALLS = Calls()
CUBE = floats(2, 3, 4)
FLOATS = (
    CUBE,
    laid(CUBE, "transposed"),
    laid(CUBE, "strided"),
    floats(2, 3, dtype="float16"),
    floats(2, 0, 3),
    TIES,
)
WHOLE = (
    ints(2, 3, low=-3, high=3),
    ints(2, 3, low=0, high=3, dtype="uint8"),
    ints(2, 3, low=-3, high=3, dtype="int64"),
    ints(2, 3, low=-2, high=2, dtype="int8"),
)
AXES = ("x", "x, 0", "x, -1", "x, 1, True", "x, (0, 1)", "x, (0, -1), True")
ONE_AXIS = ("x, 0", "x, -1", "x, 1, True")

CALLS.add("sum mean var std", AXES, *FLOATS, tolerance=1e-4)
CALLS.add("sum", AXES, *WHOLE, bools(2, 3))
CALLS.add("mean", ("x", "x, 0"), *WHOLE, bools(2, 3))
CALLS.add("var std", ("x", "x, 0"), *WHOLE)
CALLS.add("sum prod mean var std", "x", floats(), floats(dtype="float64"), floats(0))
CALLS.add("sum prod", "x, 1, dtype=dt.float64", floats(2, 3), ints(2, 3))
CALLS.add(
    "prod", ("x", *ONE_AXIS), *FLOATS, *WHOLE, bools(2, 3), given([[1, 0, 2], [0, 3, 0]]), tolerance=1e-4
)
CALLS.add(
    "var std var_mean std_mean",
    ("x, 1, correction=0", "x, 1, correction=2", "x, 0"),
    CUBE,
    floats(2, 3, dtype="float16"),
)
CALLS.add("var_mean std_mean", ("x", "x, 1, correction=1, keepdim=True"), CUBE)
CALLS.add("logsumexp", ("x, 0", "x, -1, True", "x, (0, 1)"), *FLOATS, ints(2, 3))
CALLS.add("max min", "x", *numbers(), *integers()[:4], *BOOLS, TIES)
CALLS.add("max min", "x, 1", CUBE, TIES, *WHOLE)
CALLS.add("max min", "x", floats(0, 3), is_refused=True)
CALLS.add("amax amin", ("x, 0", "x, -1, True", "x, (0, 1)"), CUBE, laid(CUBE, "transposed"), TIES, *WHOLE)
CALLS.add("amax amin", "x", CUBE, TIES, ints(3, 4), bools(3, 4))
CALLS.add("aminmax", "x", CUBE, TIES, ints(3, 4))
CALLS.add("argmax argmin", ("x", *ONE_AXIS), CUBE, laid(CUBE, "transposed"), TIES, *WHOLE)
CALLS.add("argmax argmin", "x", floats(), floats(0), gradient=False)
CALLS.add(
    "any all", ("x", *ONE_AXIS), bools(3, 4), laid(bools(3, 4), "transposed"), bools(0, 3), CUBE, *WHOLE
)
CALLS.add("any all", "x", bools(), floats())
CALLS.add("count_nonzero", ("x", "x, 0", "x, (0, 1)"), CUBE, *WHOLE, bools(2, 3))
CALLS.add("nansum nanmean", ("x", "x, 0", "x, -1, True"), CUBE, TIES, floats(2, 3, dtype="float16"))
CALLS.add(
    "norm",
    ("x", "x, 1", "x, 2, 0", "x, 3, 1, True", "x, inf", "x, -inf, 1", "x, 0", "x, 2.5, (0, 1)"),
    CUBE,
    floats(3),
    floats(2, 3, dtype="float16"),
    given([[3.0, 4.0], [1.0, 0.0]]),
)
CALLS.add("norm", "x", given((0.0, 0.0)))
CALLS.add("dist", ("x, y", "x, y, 1", "x, y, inf"), (floats(3, 4), floats(4)))
CALLS.add(
    "sum mean var std prod logsumexp argmax argmin amax amin cumsum cumprod cummax cummin logcumsumexp count_nonzero",
    "x, 3",
    CUBE,
    is_refused=True,
)
CALLS.add("any all", "x, 3", bools(2, 3), is_refused=True)

CALLS.add(
    "cumsum cumprod",
    ("x, 0", "x, 1", "x, -1"),
    CUBE,
    laid(CUBE, "flipped"),
    *WHOLE,
    bools(2, 3),
    floats(2, 3, dtype="float16"),
    floats(2, 0),
    given([[1, 0, 2], [0, 3, 0]]),
)
CALLS.add(
    "cummax cummin logcumsumexp",
    ("x, 0", "x, 1", "x, -1"),
    CUBE,
    laid(CUBE, "transposed"),
    TIES,
    floats(2, 0),
)
CALLS.add("cummax cummin", ("x, 0", "x, 1"), *WHOLE)
CALLS.add("cumsum cumprod cummax cummin logcumsumexp", "x, 0", floats())
CALLS.add("cumsum cummax cummin logcumsumexp", "x", CUBE, place="tinygrad")

CALLS.add(
    "sort",
    ("x", "x, 0", "x, 1, True", "x, -1"),
    CUBE,
    laid(CUBE, "transposed"),
    TIES,
    *WHOLE,
    floats(2, 0),
    floats(1),
)
CALLS.add("argsort", ("x", "x, 0", "x, 1, True"), CUBE, TIES, *WHOLE)
CALLS.add("sort argsort", "x", floats(), bools(4))
CALLS.add("sort argsort topk", "x, 3", CUBE, is_refused=True)
CALLS.add(
    "topk",
    ("x, 2", "x, 1, 0", "x, 2, 1, False", "x, 0"),
    CUBE,
    laid(CUBE, "transposed"),
    ints(2, 5, low=-99, high=99),
    given([[3, 1, 2], [9, 7, 8]], "uint8"),
)
CALLS.add("topk", "x, 9", CUBE, is_refused=True)
CALLS.add(
    "kthvalue",
    ("x, 1", "x, 2, 0", "x, 2, 1, True"),
    CUBE,
    laid(CUBE, "transposed"),
    floats(2, 3, dtype="float64"),
    given([[3, 1, 2], [9, 7, 8]], "int32"),
)
CALLS.add("kthvalue", "x, 9", CUBE, is_refused=True)
CALLS.add(
    "median",
    ("x", "x, 0", "x, 1", "x, -1, True"),
    CUBE,
    laid(CUBE, "transposed"),
    floats(4, 5),
    given([[4, 1, 3, 2], [8, 5, 7, 6]], "int32"),
)
CALLS.add("median", "x", floats(), floats(6), floats(7), ints(6, low=-99, high=99))
CALLS.add(
    "quantile",
    (
        "x, 0.5",
        "x, 0.3, 0",
        "x, 0.9, 1, True",
        "x, 1.0",
        "x, 0.25, -1, interpolation='lower'",
        "x, 0.3, 1, interpolation='nearest'",
        "=f(x, make(np.array([0.25, 0.5], 'float32')), 1)",
    ),
    floats(3, 4),
    laid(floats(3, 4), "transposed"),
)
CALLS.add(
    "mode",
    ("=f(x)[0]", "=f(x, 0)[0]", "=f(x, 1, True)[0]"),
    ints(4, 5, low=0, high=3),
    ints(4, 5, low=0, high=3, dtype="int64"),
    TIES,
)
CALLS.add("mode", "x", given([[1, 1, 1], [2, 2, 2]], "int32"))
CALLS.add(
    "unique",
    ("x", "=f(x, return_inverse=True, return_counts=True)"),
    ints(4, 5, low=0, high=5),
    ints(9, low=0, high=3, dtype="int64"),
    given((2.0, 1.0, 2.0)),
    bools(4),
)
CALLS.add("bincount", ("x", "x, None, 9"), ints(9, low=0, high=5), ints(9, low=0, high=5, dtype="uint8"))
CALLS.add("bincount", "x, y", (ints(9, low=0, high=5), floats(9)), gradient=False)
CALLS.add(
    "sum mean var std prod logsumexp amax amin nansum nanmean cumsum cumprod cummax cummin logcumsumexp sort argsort argmax argmin",
    ("x, 0", "x, 1"),
    ROWS,
    gradient=False,
)
CALLS.add("max min any all median", "x", ROWS, gradient=False)
CALLS.add("median", "x, 1", ROWS, gradient=False)
CALLS.add("kthvalue", "x, 2, 1", ROWS, gradient=False)
CALLS.add("quantile", ("x, 0.5, 1", "x, 0.3, 0", "x, 0.9, 1, True"), ROWS, gradient=False)
CALLS.add("histc", ("x, 5, -1, 1", "x, 4", "x"), floats(30), floats(3, 5), gradient=False)
CALLS.add(
    "searchsorted",
    ("x, y", "x, y, right=True"),
    (given((1.0, 2.0, 2.0, 5.0)), floats(2, 3, low=0, high=6)),
    (given((1, 2, 2, 5), "int32"), ints(2, 3, low=0, high=6)),
)
CALLS.add("isin", "x, y", (ints(3, 4, low=0, high=5), given((1, 3), "int32")), (floats(3), floats(2)))
CALLS.add(
    "nonzero argwhere",
    "x",
    ints(3, 4, low=0, high=1),
    bools(3, 4),
    floats(2, 3),
    bools(5),
    bools(0, 3),
    given(((0.0, 1.0), (-0.0, math.nan))),
)
CALLS.add(
    "masked_select",
    "x, y",
    (floats(3, 4), bools(3, 4)),
    (ints(3, 4), bools(4)),
    (laid(floats(3, 4), "transposed"), bools(3, 4)),
)
