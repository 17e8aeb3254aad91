"""Reductions, statistics, cumulative forms, positions, sorting and counting."""

from __future__ import annotations

from tensor.tables.rows import VIEWS, Table, bools, floats, given, ints

TABLE = Table("reductions")

for _name in ("sum", "mean", "var", "std"):
    for _a in (None, 0, 1, -1, (0, 2), (2, 1)):
        for _keep in (False, True):
            if _a is None and _keep:
                continue
            _args = "" if _a is None else f"{_a}, keepdim={_keep}"
            _theirs = "" if _a is None else f"x.{_name}(dim={_a}, keepdim={_keep})"
            TABLE.add(
                f"x.{_name}({_args})", _theirs, floats(3, 4, 5), second=_a == 1 and not _keep,
                views=VIEWS if _a == 1 and not _keep else (),
                dtypes=("float64", "float16") if _a == -1 else (),
            )  # fmt: skip
for _c in (0, 1, 2):
    TABLE.add(f"x.var(1, correction={_c})", f"x.var(1, correction={_c})", floats(3, 6))
    TABLE.add(f"x.std(1, correction={_c})", f"x.std(1, correction={_c})", floats(3, 6))
    TABLE.add(f"x.var_mean(1, correction={_c})", f"torch.var_mean(x, 1, correction={_c})", floats(3, 6))
    TABLE.add(f"x.std_mean(1, correction={_c})", f"torch.std_mean(x, 1, correction={_c})", floats(3, 6))
for _a in (0, 1, -1, (0, 2), (0, 1, 2)):
    for _keep in (False, True):
        TABLE.add(f"x.logsumexp({_a}, {_keep})", f"torch.logsumexp(x, {_a}, {_keep})", floats(3, 4, 5))
        TABLE.add(f"x.max({_a}, {_keep})", f"torch.amax(x, {_a}, {_keep})", floats(3, 4, 5))
        TABLE.add(f"x.min({_a}, {_keep})", f"torch.amin(x, {_a}, {_keep})", floats(3, 4, 5))
for _name, _theirs in (("max", "amax"), ("min", "amin")):
    for _shape in ((7,), (1, 5), (9, 1), (2, 3, 4)):
        TABLE.add(
            f"x.{_name}(-1)", f"torch.{_theirs}(x, -1)", floats(*_shape), views=VIEWS, dtypes=("float64",)
        )
    TABLE.add(f"x.{_name}()", f"x.{_name}()", ints(3, 4), dtypes=("int8", "int64", "uint8"))
    TABLE.add(f"x.{_name}(0)", f"torch.{_theirs}(x, 0)", given([[1, 1, 2], [1, 0, 2]]))
for _a in (0, 1, -1):
    for _keep in (False, True):
        TABLE.add(f"x.prod({_a}, {_keep})", "", floats(3, 4, 5))
        for _name in ("argmax", "argmin"):
            TABLE.add(f"x.{_name}({_a}, {_keep})", "", floats(3, 4, 5), gradient=False)
TABLE.add("x.prod(1)", "", given([[1, 0, 2], [0, 3, 0]]), views=("flipped",))
TABLE.add("x.prod()", "", floats(3, 4), views=VIEWS, dtypes=("float64",))
for _name in ("argmax", "argmin"):
    TABLE.add(f"x.{_name}()", "", floats(3, 4), gradient=False, views=VIEWS)
    TABLE.add(f"x.{_name}(1)", "", given([[3, 1, 3], [1, 1, 1]]), gradient=False)
    TABLE.add(f"x.{_name}(0)", "", ints(5, 3), dtypes=("int8", "int64", "uint8"))
for _name in ("any", "all"):
    for _a in ("", "0", "1, True", "-1"):
        TABLE.add(f"x.{_name}({_a})", "", bools(3, 4), views=("transposed", "strided"))
        TABLE.add(f"x.{_name}({_a}).bool()", "", ints(3, 4, low=0, high=1), dtypes=("int64", "uint8"))
for _name in ("sum", "prod"):
    for _a in ("", "0", "1"):
        _signed = ("int8", "int64", "int16")
        TABLE.add(f"x.{_name}({_a})", "", ints(3, 4, low=-4, high=4), dtypes=_signed)
        TABLE.add(f"x.{_name}({_a})", "", ints(3, 4, low=0, high=4, dtype="uint8"))
        TABLE.add(f"x.{_name}({_a})", "", bools(3, 4))
# nothing to reduce
for _name in ("sum", "mean", "prod"):
    TABLE.add(f"x.{_name}()", "", floats(0, 3))
    TABLE.add(f"x.{_name}(0)", "", floats(0, 3))
    TABLE.add(f"x.{_name}(1)", "", floats(0, 3))
    TABLE.add(f"x.{_name}()", "", floats())
TABLE.add("x.any()", "", bools(0))
TABLE.add("x.all()", "", bools(0))
# larger than one tile, and odd
for _shape in ((1, 300), (300, 1), (37, 65), (5, 129), (2, 3, 70)):
    for _a in (0, -1):
        TABLE.add(f"x.sum({_a})", "", floats(*_shape), tolerance=1e-4)
        TABLE.add(f"x.max({_a})", f"torch.amax(x, {_a})", floats(*_shape))
        TABLE.add(f"x.softmax({_a})", "", floats(*_shape))

for _name in ("softmax", "log_softmax"):
    for _a in (0, 1, -1, -2):
        TABLE.add(
            f"x.{_name}({_a})", "", floats(3, 4, 5), second=_a == 1, views=VIEWS if _a == -1 else (),
            dtypes=("float64", "float16") if _a == -1 else (),
        )  # fmt: skip
    TABLE.add(f"x.{_name}(0)", "", floats(7, low=60, high=120), tolerance=1e-4)
    TABLE.add(f"x.{_name}(1, 'float64')", f"x.{_name}(1, dtype=torch.float64)", floats(3, 4))
TABLE.add("x.softmin(1)", "F.softmin(x, 1)", floats(3, 4), views=("transposed",))

for _name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
    for _a in (0, 1, -1):
        TABLE.add(
            f"x.{_name}({_a})", f"torch.{_name}(x, {_a})", floats(3, 5), views=VIEWS if _a == 1 else (),
            dtypes=("float64", "float16") if _a == 0 and "cumm" not in _name else (),
        )  # fmt: skip
    TABLE.add(f"x.{_name}(0)", f"torch.{_name}(x, 0)", floats(70, low=-0.5, high=0.5), tolerance=1e-4)
    TABLE.add(f"x.{_name}(1)", f"torch.{_name}(x, 1)", floats(2, 0))
for _name in ("cumsum", "cumprod"):
    TABLE.add(
        f"x.{_name}(1)", "", ints(3, 6, low=-3, high=3), dtypes=("int8", "int64", "uint8"), second=False
    )
    TABLE.add(f"x.{_name}(0)", "", floats(3, 4, 2), second=_name == "cumsum")
TABLE.add("x.cummax(0)", "torch.cummax(x, 0)", ints(6, low=0, high=3), dtypes=("int8", "int64"))

# --- order

for _d in (False, True):
    for _a in (0, -1):
        TABLE.add(
            f"x.sort({_a}, {_d})", f"torch.sort(x, dim={_a}, descending={_d}, stable=True)", floats(4, 5),
            views=VIEWS if _a == -1 else (), dtypes=("float64",),
        )  # fmt: skip
        TABLE.add(
            f"x.argsort({_a}, {_d})", f"torch.argsort(x, dim={_a}, descending={_d}, stable=True)", floats(4, 5), gradient=False
        )  # fmt: skip
        TABLE.add(
            f"x.sort({_a}, {_d})", f"torch.sort(x, dim={_a}, descending={_d}, stable=True)", ints(7, 3, low=0, high=3),
            dtypes=("int8", "int64", "uint8"),
        )  # fmt: skip
    for _n in (1, 2, 33):
        TABLE.add(f"x.sort(0, {_d})", f"torch.sort(x, dim=0, descending={_d}, stable=True)", floats(_n))
    for _k in (1, 3, 5):
        TABLE.add(f"x.topk({_k}, -1, {_d})", f"torch.topk(x, {_k}, -1, {_d})", floats(4, 5), views=VIEWS[:2])
        TABLE.add(f"x.topk({_k}, 0, {_d})", f"torch.topk(x, {_k}, 0, {_d})", floats(6, 3))
TABLE.add("x.sort(1)", "torch.sort(x, 1)", floats(2, 0))
for _q in (0.0, 0.25, 0.5, 0.9, 1.0):
    for _i in ("linear", "lower", "higher", "nearest", "midpoint"):
        TABLE.add(
            f"x.quantile({_q}, 1, interpolation={_i!r})", f"torch.quantile(x, {_q}, 1, interpolation={_i!r})",
            floats(3, 6),
        )  # fmt: skip
TABLE.add("x.median(1)", "torch.median(x, 1)", floats(3, 6), views=("transposed", "flipped"))
TABLE.add("x.median()", "torch.median(x)", floats(3, 5))
TABLE.add("x.median()", "torch.median(x)", ints(4, 5, low=-99, high=99), dtypes=("int64",))
TABLE.add(
    "x.sort()[0].searchsorted(y)",
    "torch.searchsorted(x.sort()[0], y)",
    floats(7),
    floats(2, 3),
    gradient=False,
)
TABLE.add(
    "x.sort()[0].searchsorted(y, True)", "torch.searchsorted(x.sort()[0], y, right=True)", floats(2, 7),
    floats(2, 3), gradient=False,
)  # fmt: skip
TABLE.add("x.unique()", "torch.unique(x)", ints(20, low=0, high=9), dtypes=("int64", "int8"))
TABLE.add(
    "x.unique(True, True)", "torch.unique(x, return_inverse=True, return_counts=True)", ints(4, 5, low=0, high=5)
)  # fmt: skip
TABLE.add("x.bincount()", "torch.bincount(x)", ints(20, low=0, high=7), dtypes=("int64", "uint8"))
TABLE.add(
    "x.bincount(y, 12)", "torch.bincount(x, y, 12)", ints(20, low=0, high=7), floats(20), gradient=False
)
for _b in (1, 5, 9):
    TABLE.add(f"x.histc({_b}, -1, 1)", f"torch.histc(x, {_b}, -1, 1)", floats(40), gradient=False)
    TABLE.add(f"x.histc({_b})", f"torch.histc(x, {_b})", floats(40), gradient=False)

for _k, _a in ((1, 0), (3, 1), (5, 1), (2, -1)):
    TABLE.add(f"x.kthvalue({_k}, {_a})", f"torch.kthvalue(x, {_k}, {_a})", floats(4, 5), views=VIEWS[:2])
    TABLE.add(
        f"x.kthvalue({_k}, {_a}, True)", f"torch.kthvalue(x, {_k}, {_a}, True)", ints(4, 5, low=-99, high=99)
    )
TABLE.add("x.kthvalue(40)", "torch.kthvalue(x, 40)", floats(2, 64))
TABLE.add("x.kthvalue(1)", "torch.kthvalue(x, 1)", floats())
for _a in (0, 1, -1):
    TABLE.add(f"x.mode({_a})[0]", f"torch.mode(x, {_a})[0]", ints(6, 9, low=0, high=3), dtypes=("int64",))
    TABLE.add(f"x.mode({_a}, True)[0]", f"torch.mode(x, {_a}, True)[0]", ints(6, 9, low=0, high=3))
    TABLE.add(
        f"x.gather({_a}, x.mode({_a}, True)[1])", f"torch.mode(x, {_a}, True)[0]", ints(6, 9, low=0, high=3)
    )
TABLE.add("x.floor().mode(0)[0]", "x.floor().mode(0)[0]", floats(7, 3), gradient=False)
# bits are no products of conditions, which a sum over a one-hot is made of
for _e in ("(x & y)", "(x | y)", "(x ^ y)"):
    TABLE.add(
        f"{_e}.sort()[0]",
        f"{_e}.sort(stable=True)[0]",
        ints(6),
        ints(6),
        dtypes=("int64",) if "&" in _e else (),
    )
