"""Calls of movement, joining, indexing and creation, and what a Tensor says of itself."""

from __future__ import annotations

from proofs.calls import Calls, laid
from tensor.tables.rows import Operand, bools, floats, given, ints

CALLS = Calls()
CUBE = floats(2, 3, 4)
LAID = (
    CUBE,
    laid(CUBE, "transposed"),
    laid(CUBE, "strided"),
    laid(CUBE, "expanded"),
    ints(2, 3, 4),
    bools(2, 3, 4),
)
MATRICES = (floats(3, 4), laid(floats(3, 4), "transposed"), ints(3, 4))

CALLS.add("reshape", ("x, (6, 4)", "x, 4, 6", "x, -1", "x, (2, -1)", "x, (2, 1, 12, 1)"), *LAID)
CALLS.add("view", ("x, (6, 4)", "x, 4, 6", "x, -1"), CUBE, ints(2, 3, 4), laid(CUBE, "transposed"))
CALLS.add("reshape view", ("x, (5, 5)", "x, (-1, -1)"), CUBE, is_refused=True)
CALLS.add("reshape view", ("x, ()", "x, (1, 1)"), floats(), floats(1))
CALLS.add("reshape_as view_as", "x, y", (CUBE, floats(6, 4)), (ints(4), bools(2, 2)))
CALLS.add("permute", ("x, (2, 0, 1)", "x, (0, -1, 1)"), *LAID)
CALLS.add("permute", "x, (0, 0, 1)", CUBE, is_refused=True)
CALLS.add("transpose swapaxes swapdims", ("x, 0, 2", "x, -1, 1"), *LAID)
CALLS.add("transpose swapaxes swapdims", "x, 0, 3", CUBE, is_refused=True)
CALLS.add("transpose", "x", CUBE, place="tinygrad")
CALLS.add("T", "=x.T", *MATRICES, CUBE, floats(3))
CALLS.add("mT", "=x.mT", *MATRICES, *LAID)
CALLS.add("t", "x", *MATRICES, floats(3), floats())
CALLS.add("t", "x", CUBE, is_refused=True)
CALLS.add("flip", ("x, (0, 2)", "x, (-1,)", "x, (0,)"), *LAID)
CALLS.add("flip", "x, (0, 0)", CUBE, is_refused=True)
CALLS.add("flipud fliplr", "x", *MATRICES, CUBE)
CALLS.add("expand", ("x, (5, 2, 3, 4)", "x, -1, 3, 4", "x, (2, 3, 4)"), *LAID[:3])
CALLS.add("expand broadcast_to", "x, (3, 5, 4)", floats(3, 1, 4), floats(4), floats())
CALLS.add("expand broadcast_to", "x, (3, 5)", floats(3, 4), is_refused=True)
CALLS.add("expand_as", "x, y", (floats(3, 1), floats(2, 3, 4)))
CALLS.add("squeeze", ("x", "x, 0", "x, -1", "x, 1"), floats(1, 3, 1), floats(2, 1, 3), floats(1))
CALLS.add("unsqueeze", ("x, 0", "x, -1", "x, 1"), *LAID[:3], floats(3))
CALLS.add("unsqueeze", "x, 9", CUBE, is_refused=True)
CALLS.add("squeeze", "x, 9", CUBE, is_refused=True)
CALLS.add("flatten", ("x", "x, 1", "x, 0, 1", "x, -2"), *LAID, floats())
CALLS.add("ravel", "x", *LAID, floats())
CALLS.add("unflatten", ("x, 2, (2, 2)", "x, -1, (2, -1)", "x, 0, (1, 2)"), *LAID)
CALLS.add("unflatten", "x, 2, (3, 2)", CUBE, is_refused=True)
CALLS.add("repeat", ("x, (2, 1, 2)", "x, 2, 2, 1, 1"), *LAID)
CALLS.add("repeat", "x, (2,)", CUBE, is_refused=True)
CALLS.add("tile", ("x, (2,)", "x, (2, 1, 2)", "x, (2, 1, 1, 2)"), *LAID)
CALLS.add("repeat_interleave", ("x, 2", "x, 2, 0", "x, 3, -1"), *LAID)
CALLS.add("roll", ("x, 1", "x, 2, 0", "x, (1, -1), (0, 2)", "x, 9, -1"), *LAID)
CALLS.add("rot90", ("x", "x, 2", "x, -1, (1, 2)", "x, 3, [0, 2]"), CUBE, ints(2, 3, 4))
CALLS.add("movedim moveaxis", ("x, 0, 2", "x, (2, 0), (0, 1)", "x, -1, 0"), *LAID)
CALLS.add("tril triu", ("x", "x, 1", "x, -1", "x, 9"), *MATRICES, CUBE, bools(3, 4))
CALLS.add("diag", "x", floats(3), ints(3), floats(3, 3))
CALLS.add("diag", "x", CUBE, is_refused=True)
CALLS.add(
    "diagonal",
    ("x", "x, 1", "x, -1", "x, 0, 1, 2", "x, 0, -1, 0"),
    CUBE,
    laid(CUBE, "transposed"),
    ints(2, 3, 4),
)
CALLS.add("diag_embed", "x", floats(3), CUBE, ints(3))
CALLS.add("trace", "x", floats(3, 3), ints(3, 3), floats(3, 4))
CALLS.add(
    "unfold", ("x, 2, 2, 1", "x, -1, 3, 2", "x, 0, 1, 1"), CUBE, laid(CUBE, "transposed"), ints(2, 3, 4)
)
CALLS.add("unfold", "x, 2, 9, 1", CUBE, is_refused=True)
CALLS.add("unfold", "x, (2, 2)", floats(1, 2, 4, 4), place="torch.nn.functional")
CALLS.add("narrow", ("x, 2, 1, 2", "x, -1, 0, 4", "x, 0, -1, 1"), *LAID)
CALLS.add("narrow", "x, 2, 3, 2", CUBE, is_refused=True)
CALLS.add("select", ("x, 0, 1", "x, -1, -2"), *LAID)
CALLS.add("select", "x, 0, 5", CUBE, is_refused=True)
CALLS.add("unbind", ("x", "x, 1", "x, -1"), *LAID)
CALLS.add("chunk", ("x, 2", "x, 3, 2", "x, 9, 1", "x, 2, -1"), *LAID)
CALLS.add("split", ("x, 2", "x, 3, 2", "x, [1, 3], -1"), *LAID)
CALLS.add("chunk", "x, 0", CUBE, is_refused=True)
CALLS.add("split", "x, [1, 1], 2", CUBE, is_refused=True)
CALLS.add("shrink", ("x, ((0, 1), (1, 3), (0, 4))", "x, (None, (1, 2), None)"), *LAID)
CALLS.add("shrink_to", "x, (1, 2, 3)", *LAID)
CALLS.add("pad_to", ("x, (3, 3, 5)", "x, (2, None, 5)"), *LAID[:4])
CALLS.add("pad", ("x, (1, 2)", "x, (1, 0, 2, 1)", "x, (1, 1), value=2.5", "x, (-1, 1)"), *LAID[:5])
CALLS.add(
    "pad",
    ("x, (1, 2), mode='reflect'", "x, (1, 2), mode='replicate'", "x, (1, 2), mode='circular'"),
    floats(2, 4),
    CUBE,
)
CALLS.add("pad", ("x, (1, 1), mode='mirror'", "x, (9, 9), mode='reflect'"), CUBE, is_refused=True)
CALLS.add(
    "cat",
    ("=f((x, y))", "=f((x, y), 0)", "=f((x, y), dim=1)", "=f((x, x, y), -1)"),
    (floats(3, 3), floats(3, 3)),
    (ints(3, 3), floats(3, 3)),
    (laid(floats(3, 3), "transposed"), floats(3, 3, dtype="float16")),
    place="torch",
)
CALLS.add(
    "cat",
    ("x, y", "x, y, dim=1", "x, x, y, dim=-1"),
    (floats(3, 3), floats(3, 3)),
    (ints(3, 3), floats(3, 3)),
    (laid(floats(3, 3), "transposed"), floats(3, 3, dtype="float16")),
    place="tinygrad",
)
CALLS.add(
    "stack",
    ("=f((x, y))", "=f((x, y), dim=1)", "=f((x, y), -1)"),
    (floats(3, 3), floats(3, 3)),
    (ints(3, 3), ints(3, 3)),
    place="torch",
)
CALLS.add(
    "stack",
    ("x, y", "x, y, dim=1", "x, y, dim=-1"),
    (floats(3, 3), floats(3, 3)),
    (ints(3, 3), ints(3, 3)),
    place="tinygrad",
)
CALLS.add("cat", "x, y", (floats(3, 3), floats(2, 2)), place="tinygrad", is_refused=True)
CALLS.add("reshape view", "=written(f(x, (2, 2)), x)", floats(4), gradient=False)
CALLS.add("transpose", "=written(f(x, 0, 1), x)", floats(3, 4), gradient=False)
CALLS.add("squeeze unsqueeze", "=written(f(x, 0), x)", floats(1, 4), gradient=False)
CALLS.add(
    "reshape", "=written(f(x, (12,)), x)", floats(3, 4), laid(floats(3, 4), "transposed"), gradient=False
)
CALLS.add(
    "flatten ravel", "=written(f(x), x)", floats(3, 4), laid(floats(3, 4), "transposed"), gradient=False
)
CALLS.add("cat stack", "=f((x, y))", (floats(3, 3), floats(2, 2)), place="torch", is_refused=True)
CALLS.add(
    "meshgrid",
    ("x, y", "x, y, indexing='xy'", "x, y, indexing='ij'"),
    (floats(3), floats(4)),
    (ints(3), ints(2)),
)
CALLS.add("diff", ("x", "x, 2", "x, 1, 0"), CUBE, ints(3, 4), bools(3, 4))
CALLS.add("vander", ("x", "x, 3", "=f(x, 3, increasing=True)"), floats(3), ints(3))
CALLS.add("rearrange", ("x, 'a b c -> c (a b)'", "x, 'a b (c d) -> a c b d', c=2"), *LAID)
CALLS.add("pixel_shuffle", "x, 2", floats(1, 8, 3, 2), floats(2, 1, 4, 2, 2))
CALLS.add("pixel_unshuffle", "x, 2", floats(1, 2, 4, 6))

# --- indexing
I23 = ints(2, 3, low=0, high=1, dtype="int64")
CALLS.add(
    "gather",
    ("x, 0, y", "x, -2, y"),
    (floats(2, 3), I23),
    (laid(floats(2, 3), "transposed"), I23),
    (ints(2, 3), I23),
)
CALLS.add("gather", "x, 5, y", (floats(2, 3), I23), is_refused=True)
CALLS.add("gather", "x, 0, y", (floats(), given(0, "int64")))
CALLS.add(
    "scatter",
    ("x, 0, y, z", "x, 1, y, 2.5", "x, -1, y, 1"),
    (floats(2, 3), given([[1, 0, 1]], "int64"), floats(1, 3)),
)
CALLS.add(
    "scatter",
    ("x, 0, y, z, reduce='add'", "x, 0, y, z, reduce='multiply'"),
    (floats(2, 3), I23, floats(2, 3)),
    gradient=False,
)
CALLS.add(
    "scatter_add",
    ("x, 0, y, z", "x, 1, y, z"),
    (floats(2, 3), I23, floats(2, 3)),
    (ints(2, 3), I23, ints(2, 3)),
)
CALLS.add(
    "scatter_reduce",
    tuple(f"x, 0, y, z, {r!r}" for r in ("sum", "prod", "mean", "amax", "amin")),
    (floats(3, 3), I23, floats(2, 3)),
    (ints(3, 3), I23, ints(2, 3)),
)
CALLS.add(
    "scatter_reduce",
    tuple(f"x, 0, y, z, {r!r}, include_self=False" for r in ("sum", "prod", "mean", "amax", "amin")),
    (floats(3, 3), I23, floats(2, 3)),
)
CALLS.add("scatter scatter_add", "x, 5, y, z", (floats(2, 3), I23, floats(2, 3)), is_refused=True)
CALLS.add(
    "index_select",
    ("x, 0, y", "x, -1, y"),
    (CUBE, given((1, 0, 1), "int64")),
    (ints(2, 3, 4), given((1,), "int32")),
)
CALLS.add(
    "index_add",
    ("x, 1, y, z", "x, 1, y, z, alpha=0.5"),
    (floats(2, 3), given((1, 0, 1), "int64"), floats(2, 3)),
)
CALLS.add(
    "index_fill",
    ("x, 1, y, 7.0", "x, 0, y, 2"),
    (floats(3, 3), given((1, 0), "int64")),
    (ints(3, 3), given((1, 0), "int64")),
)
CALLS.add(
    "take", "x, y", (floats(3, 4), given([[11, 0], [-1, 5]], "int64")), (ints(3, 4), given((1, 1), "int64"))
)
CALLS.add("take_along_dim", ("x, y, 1", "x, y"), (floats(3, 4), given([[1], [0], [3]], "int64")))

# --- creation
SIZES = ("=f(2, 3)", "=f((2, 3))", "=f(0)", "=f(2, dtype=dt.float64)", "=f(3, dtype=dt.int32)")
CALLS.add("zeros ones", SIZES)
CALLS.add("zeros ones empty", "=f(-1)", place="torch", is_refused=True)
CALLS.add("empty", ("=f(2, 3).shape", "=f(2, 3).dtype", "=f((2, 3)).shape", "=f(2, dtype=dt.int32).dtype"))
CALLS.add("full", ("=f((2, 3), 1.5)", "=f((2,), 7)", "=f((), True)", "=f((2,), 7, dtype=dt.float16)"))
CALLS.add(
    "zeros_like ones_like",
    ("x", "x, dtype=dt.float64"),
    CUBE,
    ints(3),
    bools(2),
    floats(),
    floats(2, dtype="float16"),
    laid(CUBE, "expanded"),
    gradient=False,
)
CALLS.add("empty_like", ("=f(x).shape", "=f(x).dtype"), CUBE, ints(3))
CALLS.add(
    "full_like",
    ("x, 2", "x, 2.5", "x, 2.5, dtype=dt.float16"),
    CUBE,
    floats(2, dtype="float16"),
    ints(3),
    gradient=False,
)
CALLS.add(
    "arange",
    (
        "=f(5)",
        "=f(1, 5)",
        "=f(1, 9, 3)",
        "=f(5.0)",
        "=f(0, 1, 0.25)",
        "=f(5, 0, -2)",
        "=f(0)",
        "=f(5, dtype=dt.float32)",
        "=f(5, dtype=dt.int64)",
    ),
)
CALLS.add("arange", "=f(0, 5, 0)", is_refused=True)
CALLS.add(
    "linspace",
    ("=f(0, 1, 5)", "=f(3.0, -2.0, 4)", "=f(0, 10, 5, dtype=dt.int32)", "=f(0, 1, 1)", "=f(0, 1, 0)"),
)
CALLS.add("linspace", "=f(0, 1, -1)", is_refused=True)
CALLS.add("eye", ("=f(3)", "=f(2, 4)", "=f(4, 2)", "=f(3, dtype=dt.int32)", "=f(0)"))
CALLS.add("eye", "=f(-1)", is_refused=True)
CALLS.add(
    "new_zeros new_ones",
    ("x, (2, 3)", "x, 2, 3"),
    floats(2),
    ints(2),
    bools(2),
    floats(2, dtype="float16"),
    gradient=False,
)
CALLS.add("new_full", ("x, (2, 3), 7", "x, (2,), 1.5"), floats(2), ints(2), gradient=False)
CALLS.add("const_like", ("x, 2.5", "x, 3"), CUBE, ints(3), gradient=False)
CALLS.add(
    "one_hot",
    ("x, 4", "x, 6"),
    ints(5, low=0, high=3, dtype="int64"),
    ints(2, 3, low=0, high=3, dtype="int64"),
)
CALLS.add("one_hot", ("x, 3", "x"), given([0, 3, 1, -1], "int64"))

# --- what a Tensor says of itself
KINDS: tuple[Operand, ...] = (
    CUBE,
    ints(3),
    bools(2, 2),
    floats(),
    floats(0, 3),
    floats(2, dtype="float16"),
    ints(2, dtype="int64"),
)
CALLS.add("ndim", "=x.ndim", *KINDS)
CALLS.add("shape", "=tuple(x.shape)", *KINDS)
CALLS.add("max_shape", "=x.max_shape", *KINDS)
CALLS.add("dtype", "=x.dtype", *KINDS)
CALLS.add("dim numel nelement element_size max_numel", "=f(x)", *KINDS)
CALLS.add("size", ("=tuple(f(x))",), *KINDS)
CALLS.add("size", ("x, 1", "x, -1"), CUBE)
CALLS.add("nbytes", "x", *KINDS, place="tinygrad")
CALLS.add("nbytes", "=x.nbytes", *KINDS, place="torch")
CALLS.add("item", "x", floats(), ints(), bools(), floats(1, 1), ints(1, dtype="int64"), gradient=False)
CALLS.add("item", "x", floats(2), gradient=False, is_refused=True)
CALLS.add("tolist", "x", *KINDS, gradient=False)
CALLS.add(
    "numpy", ("=f(x.detach())", "=str(f(x.detach()).dtype)"), *KINDS, laid(CUBE, "transposed"), gradient=False
)
CALLS.add("device", "=type(x.device).__name__", CUBE)
CALLS.add("requires_grad", "=x.requires_grad", CUBE, ints(3))
CALLS.add("requires_grad_", ("=f(x.detach()).requires_grad", "=f(x.detach(), False).requires_grad"), CUBE)
CALLS.add("data", "=f(x).tolist()", CUBE, ints(3), place="tinygrad", gradient=False)
CALLS.add("data", "=x.data", CUBE, place="torch", gradient=False)
