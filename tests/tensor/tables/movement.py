"""Movement, joining and taking apart, padding; creation; indexing, gathering, scattering and writing."""

from __future__ import annotations

from tensor.tables.rows import VIEWS, Table, bools, floats, given, ints

TABLE = Table("movement")

# expressions that are the same in both, of a (2, 3, 4)
for _e in (
    "x.reshape(6, 4)", "x.reshape(-1)", "x.reshape(4, -1)", "x.reshape(1, 24, 1)", "x.reshape(2, 12)",
    "x.permute(2, 0, 1)", "x.permute(0, 2, 1)", "x.permute(-1, 0, 1)", "x.transpose(0, 2)",
    "x.transpose(-1, -2)", "x.flip(0)", "x.flip(0, 2)", "x.flip(-1)", "x.flatten()", "x.flatten(1)",
    "x.flatten(0, 1)", "x.unsqueeze(0)", "x.unsqueeze(-1)", "x.unsqueeze(2)", "x.squeeze()", "x.squeeze(0)",
    "x.unflatten(2, (2, 2))", "x.unflatten(-1, (4, 1))", "x.repeat(2, 1, 3)", "x.repeat(2, 1, 1, 2)",
    "x.repeat_interleave(2, 1)", "x.repeat_interleave(3)", "x.roll(1, 0)", "x.roll(-2, 2)", "x.roll((1, 2), (0, 2))",
    "x.roll(5)", "x.chunk(2, 2)", "x.chunk(3, 1)", "x.chunk(4, 0)", "x.split(2, 2)", "x.split(3, 2)",
    "x.split([1, 3], 2)", "x.diagonal(0, 1, 2)", "x.diagonal(1, 0, 2)", "x.diagonal(-1, 1, 2)",
    "x.unfold(2, 2, 1)", "x.unfold(1, 3, 1)", "x.unfold(2, 2, 2)", "x.expand(5, 2, 3, 4)", "x.tril()", "x.triu()",
    "x.tril(1)", "x.triu(-1)", "x.triu(2)", "x.tril(-2)", "x.mT", "x.contiguous() * 1", "x.clone() + 1",
    "x.detach() * x", "x.reshape(3, 8).T", "x.flatten().diag()", "x.reshape(4, 6)[:4, :4].diag()",
):  # fmt: skip
    TABLE.add(_e, "", floats(2, 3, 4), views=VIEWS[:3])
for _e in (
    "x.squeeze()",
    "x.squeeze(0)",
    "x.squeeze(2)",
    "x.expand(3, 2, 5)",
    "x.expand(-1, 2, 5)",
    "x.reshape(2)",
):
    TABLE.add(_e, "", floats(1, 2, 1))
TABLE.add("x.view(2, 12)", "", floats(2, 3, 4))
for _e in ("x.reshape(0)", "x.reshape(3, 0, 2)", "x.permute(1, 0)", "x.flip(0)", "x.flatten()"):
    TABLE.add(_e, "", floats(0, 3))
for _a in (0, 1, 2, -1):
    TABLE.add(
        f"x.cat(y, dim={_a})", f"torch.cat((x, y), {_a})", floats(2, 3, 4), floats(2, 3, 4), views=VIEWS[:2]
    )
    TABLE.add(f"x.stack(y, dim={_a})", f"torch.stack((x, y), {_a})", floats(2, 3, 4), floats(2, 3, 4))
    TABLE.add(f"x.cat(y, x, dim={_a})", f"torch.cat((x, y, x), {_a})", floats(2, 3, 4), floats(2, 3, 4))
TABLE.add("x.cat(y, dim=0)", "torch.cat((x, y), 0)", floats(0, 4), floats(2, 4))
TABLE.add(
    "x.cat(y, dim=1)", "torch.cat((x, y), 1)", floats(2, 5), floats(2, 1), dtypes=("float64", "float16")
)
TABLE.add("x.cat(y, dim=0)", "torch.cat((x, y), 0)", ints(3), ints(2), dtypes=("int8", "int64", "uint8"))
for _i in ("ij", "xy"):
    TABLE.add(
        f"x.meshgrid(y, indexing={_i!r})", f"torch.meshgrid(x, y, indexing={_i!r})", floats(3), floats(4)
    )
TABLE.add(
    "x.rearrange('a b c -> c (a b)')", "x.permute(2, 0, 1).reshape(4, 6)", floats(2, 3, 4), views=VIEWS[:2]
)
TABLE.add("x.shrink([(0, 1), (1, 3), None])", "x[0:1, 1:3]", floats(2, 3, 4), views=VIEWS)
TABLE.add(
    "x.pool((2, 2), 1).shape and x.pool((2, 2), 1)", "x.unfold(1, 2, 1).unfold(2, 2, 1)", floats(2, 3, 4)
)
for _p in ((1, 2), (0, 3), (1, 0, 2, 1), (-1, 2), (0, 0, 1, 1, 2, 0), (-1, -1), (2, -1, -1, 0)):
    TABLE.add(f"x.pad({_p})", f"F.pad(x, {_p})", floats(2, 3, 4), views=VIEWS[:2])
    TABLE.add(f"x.pad({_p}, value=1.5)", f"F.pad(x, {_p}, value=1.5)", floats(2, 3, 4))
for _mode in ("reflect", "replicate", "circular"):
    for _p in ((1, 2), (2, 0), (1, 1, 2, 1), (0, 2, 1, 0), (3, 3, 2, 2)):
        TABLE.add(
            f"x.pad({_p}, {_mode!r})",
            f"F.pad(x, {_p}, {_mode!r})",
            floats(1, 2, 3, 4) if len(_p) > 2 else floats(1, 2, 4),
        )

# --- creation

for _ours, _theirs in (
    ("arange(5)", ""), ("arange(2, 9)", ""), ("arange(9, 2, -2)", ""), ("arange(0, 1, 0.3)", ""),
    ("arange(-3, 3, 2)", ""), ("arange(0)", ""), ("arange(5, dtype='float32')", "arange(5, dtype=torch.float32)"),
    ("linspace(0, 1, 5)", ""), ("linspace(-3, 3, 4)", ""), ("linspace(5, 1, 9)", ""), ("linspace(2, 3, 1)", ""),
    ("linspace(2, 3, 0)", ""), ("eye(3)", ""), ("eye(2, 4)", ""), ("eye(4, 2)", ""), ("eye(0)", ""),
    ("zeros(2, 3)", ""), ("ones(2, 3)", ""), ("zeros(0, 3)", ""), ("full((2, 2), 7)", ""), ("full((2,), 1.5)", ""),
    ("full((2,), True)", ""), ("ones(3, dtype='int64')", "ones(3, dtype=torch.int64)"),
):  # fmt: skip
    TABLE.add(f"Tensor.{_ours}", f"torch.{_theirs or _ours}")
for _e in ("zeros_like", "ones_like"):
    TABLE.add(f"x.{_e}()", f"torch.{_e}(x)", floats(2, 3), dtypes=("float64", "float16"))
    TABLE.add(f"x.{_e}()", f"torch.{_e}(x)", ints(2, 3), dtypes=("int8",))
TABLE.add("x.full_like(3)", "torch.full_like(x, 3)", floats(2, 3))

# --- indexing; the gradient of each is a scatter

for _e in (
    "x[0]", "x[-1]", "x[1, 2]", "x[:, 1]", "x[..., 0]", "x[..., -1, :]", "x[1:]", "x[:-1]", "x[:, 1:3]",
    "x[:, ::2]", "x[:, 1::2, ::3]", "x[None]", "x[:, None]", "x[..., None]", "x[0, None, 1]", "x[:, :, 3:1]",
    "x[5:]", "x[:, -2:]", "x[1, ..., 2]", "x[:]", "x[...]", "x[0:1, 0:1, 0:1]", "x[:, 0:3:2, None, 1]",
):  # fmt: skip
    TABLE.add(_e, "", floats(3, 4, 5), views=VIEWS[:3])
TABLE.add("x[::-1, ::-2]", "x.flip(0, 1)[:, ::2]", floats(3, 4, 5), views=VIEWS[:2])
_rows, _more = given([2, 0, 2, -1], "int64"), given([1, 3, -4, 0], "int64")
for _e in (
    "x[y]", "x[:, y]", "x[..., y]", "x[y, 1]", "x[0, :, y]", "x[y, :, 1:3]", "x[None, y]", "x[y, None]",
    "x[:, y, 2]", "x[1:, y]", "x[y, ..., 0]", "x[:, :, y]",
):  # fmt: skip
    TABLE.add(_e, "", floats(3, 4, 5), _rows, views=VIEWS[:2])
for _e in (
    "x[y, z]",
    "x[:, y, z]",
    "x[y, :, z]",
    "x[y, z, 1]",
    "x[y[:, None], z]",
    "x[y, None, z]",
    "x[..., y, z]",
):
    TABLE.add(_e, "", floats(3, 4, 5), _rows, _more)
TABLE.add("x[y]", "", floats(3, 4), given([[0, 1], [2, 2]], "int64"), dtypes=("float64", "float16"))
TABLE.add("x[y]", "", floats(3), given([], "int64"))
TABLE.add("x[[0, 2]]", "", floats(3, 4))
TABLE.add("x[[0, 2], [1, -1]]", "", floats(3, 4))
TABLE.add("x.masked_select(y)", "", floats(3, 4), bools(3, 4), views=VIEWS[:2])
TABLE.add("x.masked_select(y)", "", floats(3, 4), bools(4))
TABLE.add("x.nonzero()", "", ints(4, 5, low=0, high=2), dtypes=("int64",))
TABLE.add("x.one_hot(5)", "F.one_hot(x.long(), 5)", ints(6, low=0, high=4), dtypes=("int64", "uint8"))

for _d in (0, 1, -1):
    _i = ints(3, 4, low=0, high=2, dtype="int64")
    TABLE.add(f"x.gather({_d}, y)", "", floats(3, 4), _i, views=VIEWS)
    TABLE.add(f"x.gather({_d}, y)", "", floats(5, 6), _i, dtypes=("float64", "float16"))
    TABLE.add(f"x.gather({_d}, y)", "", ints(3, 4), ints(2, 3, low=0, high=2, dtype="int64"))
    for _reduce in ("sum", "prod", "mean", "amax", "amin"):
        for _self in (True, False):
            TABLE.add(
                f"x.scatter_reduce({_d}, y, z, {_reduce!r}, include_self={_self})", "", floats(3, 4), _i,
                floats(3, 4, low=0.5), gradient=_reduce in ("sum", "mean"),
            )  # fmt: skip
            TABLE.add(
                f"x.scatter_reduce({_d}, y, z, {_reduce!r}, include_self={_self})", "", ints(3, 4), _i, ints(3, 4),
            )  # fmt: skip
    _once = (
        given([[0, 1, 2, 0], [1, 2, 0, 1]], "int64")
        if _d == 0
        else given([[3, 0, 2, 1], [1, 2, 0, 3]], "int64")
    )
    TABLE.add(f"x.scatter({_d}, y, z)", "", floats(3, 4), _once, floats(2, 4))
    TABLE.add(f"x.scatter({_d}, y, 1.5)", "", floats(3, 4), _once, gradient=True)
    TABLE.add(
        f"x.scatter({_d}, y, z, reduce='add')", f"x.scatter_add({_d}, y, z)", floats(3, 4), _i, floats(3, 4)
    )
    TABLE.add(f"x.scatter({_d}, y, z)", "", ints(3, 4), _once, ints(2, 4), dtypes=("int64",))

# --- writing: put(t, index, value) is t with t[index] = value
for _index in (
    "0",
    "(slice(None), 1)",
    "(Ellipsis, -1)",
    "slice(1, 3)",
    "(slice(None), slice(0, 4, 2))",
    "(1, 2)",
):
    TABLE.add(f"put(x, {_index}, 1.5)", "", floats(3, 4, 5), views=VIEWS[:2])
for _index, _shape in (
    ("0", (4, 5)),
    ("(slice(None), 1)", (5,)),
    ("slice(1, 3)", (2, 4, 5)),
    ("slice(1, 3)", (5,)),
):
    TABLE.add(f"put(x, {_index}, y)", "", floats(3, 4, 5), floats(*_shape))
_distinct = given([2, 0], "int64")
TABLE.add("put(x, y, z)", "", floats(3, 4), _distinct, floats(2, 4))
TABLE.add("put(x, (slice(None), y), z)", "", floats(3, 4), _distinct, floats(3, 2))
TABLE.add("put(x, (y, y), z)", "", floats(3, 4), _distinct, floats(2))
TABLE.add("put(x, y, 0.5)", "", floats(3, 4), bools(3, 4), views=("transposed",))
TABLE.add("put(x, y, z)", "", ints(3, 4), _distinct, ints(2, 4), dtypes=())
