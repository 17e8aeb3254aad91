"""Products, other matrices, Fourier transforms, convolution, pooling, normalisation, attention, losses."""

from __future__ import annotations

import math

import numpy as np
from tensor.tables.rows import VIEWS, Operand, Table, bools, floats, given, ints

TABLE = Table("networks")

# --- products

for _a, _b in (
    ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)), ((1, 4), (4, 1)), ((0, 4), (4, 3)), ((3, 0), (0, 2)), ((17, 33), (33, 9)),
    ((65, 7), (7, 40)), ((2, 3, 4), (4,)),
):  # fmt: skip
    _both = _a == (3, 4) and _b == (4, 5)
    TABLE.add(
        "x @ y", "", floats(*_a), floats(*_b), tolerance=5e-5, second=_both, views=VIEWS if _both else (),
        dtypes=("float64", "float16") if _both else (),
    )  # fmt: skip
TABLE.add("x @ y", "", ints(3, 4), ints(4, 5), dtypes=("int64",))
TABLE.add("y @ x", "", floats(4, 5), floats(3, 4), views=VIEWS)
TABLE.add("x @ x.mT", "", floats(2, 3, 4), second=True)
TABLE.add("x.linear(y, z)", "x @ y + z", floats(3, 4), floats(4, 5), floats(5), views=VIEWS[:2])
for _f, *_shapes in (
    ("ij,jk->ik", (3, 4), (4, 5)), ("ij,jk", (3, 4), (4, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("ij->ji", (3, 4)), ("ii->i", (4, 4)), ("ii", (4, 4)), ("ij->", (3, 4)), ("ij->j", (3, 4)),
    ("i,j->ij", (3,), (4,)), ("i,i->", (4,), (4,)), ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
    ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("ij,jk,kl->il", (3, 4), (4, 5), (5, 2)),
    ("ij,kj,kl->il", (3, 4), (5, 4), (5, 2)), ("ijk,k->ij", (2, 3, 4), (4,)), ("ij,ij->ij", (3, 4), (3, 4)),
    ("a,ab,b->", (3,), (3, 4), (4,)), ("ab,bc,cd,de->ae", (2, 3), (3, 4), (4, 5)),
    ("ijj->i", (2, 3, 3)), ("...->...", (2, 3)), ("ab,cd->abcd", (2, 3), (2, 2)), ("ba,a->", (3, 4), (4,)),
):  # fmt: skip
    if _f.count(",") != len(_shapes) - 1:
        _shapes.append((5, 2))
    _operands = [floats(*_s) for _s in _shapes]
    _names = ", ".join("xyzw"[: len(_shapes)])
    TABLE.add(
        f"Tensor.einsum({_f!r}, {_names})", f"torch.einsum({_f!r}, {_names})", *_operands, tolerance=5e-5
    )
for _e, _theirs, _operands in (
    ("x.outer(y)", "", (floats(3), floats(4))), ("x.kron(y)", "torch.kron(x.contiguous(), y)", (floats(2, 3), floats(3, 2))),
    ("x.cross(y)", "torch.linalg.cross(x, y)", (floats(4, 3), floats(4, 3))),
    ("x.trace()", "", (floats(4, 4),)), ("x.vander(4)", "torch.linalg.vander(x, N=4).flip(1)", (floats(3),)),
    ("x.cdist(y)", "torch.cdist(x, y)", (floats(4, 3), floats(5, 3, low=3, high=5))),
    ("x.cdist(y, 1.0)", "torch.cdist(x, y, 1.0)", (floats(4, 3), floats(5, 3))),
    ("x.cdist(y, inf)", "torch.cdist(x, y, inf)", (floats(4, 3), floats(5, 3))),
    ("(x @ x.mT + 2).tril().sum(0)", "", (floats(3, 3),)),
):  # fmt: skip
    TABLE.add(_e, _theirs, *_operands, tolerance=5e-5, views=("transposed", "flipped"))

# --- Fourier transforms: pairs of real numbers

for _n in (1, 2, 4, 5, 12):
    for _f in ("fft", "ifft"):
        _theirs = f"torch.view_as_real(torch.fft.{_f}(torch.view_as_complex(x.contiguous())))"
        TABLE.add(f"x.{_f}()", _theirs, floats(2, _n, 2), tolerance=1e-4)
    TABLE.add("x.rfft()", "torch.view_as_real(torch.fft.rfft(x))", floats(3, _n), tolerance=1e-4)
for _n in (None, 6, 7):
    TABLE.add(
        f"x.irfft({_n})", f"torch.fft.irfft(torch.view_as_complex(x), {_n})", floats(2, 4, 2), tolerance=1e-4,
        gradient=False,
    )  # fmt: skip

# --- convolution and pooling

for _groups, _cin, _cout in ((1, 3, 4), (1, 1, 1), (2, 4, 6), (4, 4, 4), (3, 3, 6)):
    for _k, _args in (
        (3, "stride=1"), (3, "padding=1"), (3, "stride=2, padding=1"), (1, "stride=1"), (2, "stride=2"),
        (3, "dilation=2, padding=2"), ((3, 2), "stride=(2, 1), padding=(1, 0)"),
    ):  # fmt: skip
        _kh, _kw = _k if isinstance(_k, tuple) else (_k, _k)
        TABLE.add(
            f"x.conv2d(y, groups={_groups}, {_args})", f"F.conv2d(x, y, groups={_groups}, {_args})",
            floats(2, _cin, 7, 6), floats(_cout, _cin // _groups, _kh, _kw), tolerance=1e-4,
        )  # fmt: skip
TABLE.add("x.conv2d(y, z, padding=1)", "F.conv2d(x, y, z, padding=1)", floats(1, 2, 5, 5), floats(3, 2, 3, 3), floats(3), tolerance=1e-4, views=VIEWS[:3])  # fmt: skip
TABLE.add("x.conv2d(y)", "F.conv1d(x, y)", floats(2, 3, 9), floats(4, 3, 3), tolerance=1e-4)
TABLE.add("x.conv2d(y, stride=2, padding=2)", "F.conv1d(x, y, stride=2, padding=2)", floats(2, 3, 9), floats(4, 3, 3), tolerance=1e-4)  # fmt: skip
TABLE.add("x.conv2d(y, padding=1)", "F.conv3d(x, y, padding=1)", floats(1, 2, 4, 3, 5), floats(2, 2, 3, 3, 3), tolerance=2e-4)  # fmt: skip
TABLE.add("x.conv2d(y)", "F.conv2d(x, y)", floats(0, 2, 5, 5), floats(3, 2, 3, 3))
for _args in (
    "stride=1", "stride=2", "padding=1", "stride=2, padding=1", "stride=2, padding=1, output_padding=1",
    "dilation=2", "stride=3, padding=2, output_padding=2", "stride=(2, 1), padding=(0, 1)",
):  # fmt: skip
    for _groups in (1, 2):
        TABLE.add(
            f"x.conv_transpose2d(y, groups={_groups}, {_args})", f"F.conv_transpose2d(x, y, groups={_groups}, {_args})",
            floats(2, 4, 4, 5), floats(4, 3, 3, 3), tolerance=1e-4,
        )  # fmt: skip
for _k, _s, _p, _d in (
    (2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 2), (2, 1, 0, 1), (3, 3, 1, 1), ((2, 3), (2, 1), (1, 1), 1),
    (1, 1, 0, 1), (4, 2, 2, 1),
):  # fmt: skip
    for _ceil in (False, True):
        _image = floats(2, 2, 7, 9)
        TABLE.add(
            f"x.max_pool2d({_k}, {_s}, {_d}, {_p}, {_ceil})", f"F.max_pool2d(x, {_k}, {_s}, {_p}, {_d}, {_ceil})",
            _image, views=("transposed",),
        )  # fmt: skip
        TABLE.add(
            f"x.max_pool2d({_k}, {_s}, {_d}, {_p}, {_ceil}, True)",
            f"F.max_pool2d(x, {_k}, {_s}, {_p}, {_d}, {_ceil}, True)", _image, gradient=False,
        )  # fmt: skip
        if _d == 1:
            for _count in (True, False):
                TABLE.add(
                    f"x.avg_pool2d({_k}, {_s}, 1, {_p}, {_ceil}, {_count})",
                    f"F.avg_pool2d(x, {_k}, {_s}, {_p}, {_ceil}, {_count})", _image,
                )  # fmt: skip
for _size in ((7, 3), (4, 12), (1, 1), (8, 8), (8, 18), (2, 3)):
    for _corners in (False, True):
        TABLE.add(
            f"x.interpolate({_size}, 'linear', {_corners})",
            f"F.interpolate(x, {_size}, mode='bilinear', align_corners={_corners})", floats(2, 3, 4, 6),
        )  # fmt: skip
    for _mode in ("nearest", "nearest-exact"):
        TABLE.add(
            f"x.interpolate({_size}, {_mode!r})",
            f"F.interpolate(x, {_size}, mode={_mode!r})",
            floats(2, 3, 4, 6),
        )

# --- normalisation and attention

for _a, _shape in ((-1, (5,)), ((-2, -1), (4, 5)), ((1, 2, 3), (3, 4, 5))):
    TABLE.add(
        f"x.layernorm({_a})", f"F.layer_norm(x, {_shape})", floats(2, 3, 4, 5), tolerance=1e-4, views=VIEWS[:2],
        dtypes=("float64",), second=_a == -1,
    )  # fmt: skip
for _p in (1.0, 2.0, 3.0):
    for _d in (0, 1, -1):
        TABLE.add(f"x.normalize({_p}, {_d})", f"F.normalize(x, {_p}, {_d})", floats(3, 4, 5))
TABLE.add(
    "x.batchnorm(y, z, x.mean((0, 2, 3)), (x.var((0, 2, 3), correction=0) + 1e-5).rsqrt())",
    "F.batch_norm(x, None, None, y, z, True, 0.0, 1e-5)", floats(3, 2, 4, 5), floats(2), floats(2), tolerance=1e-4,
)  # fmt: skip
TABLE.add(
    "x.batchnorm(None, None, y, z)", "(x - y.reshape(1, 2, 1, 1)) * z.reshape(1, 2, 1, 1)", floats(3, 2, 4, 5),
    floats(2), floats(2),
)  # fmt: skip
for _lead in ((), (2,), (2, 3)):
    for _causal in (False, True):
        TABLE.add(
            f"x.scaled_dot_product_attention(y, z, is_causal={_causal})",
            f"F.scaled_dot_product_attention(x, y, z, is_causal={_causal})", floats(*_lead, 5, 4), floats(*_lead, 5, 4),
            floats(*_lead, 5, 3), tolerance=5e-5,
        )  # fmt: skip
    TABLE.add(
        "x.scaled_dot_product_attention(y, z, w)", "F.scaled_dot_product_attention(x, y, z, w)", floats(*_lead, 5, 4),
        floats(*_lead, 6, 4), floats(*_lead, 6, 3), floats(5, 6), tolerance=5e-5,
    )  # fmt: skip
TABLE.add(
    "x.scaled_dot_product_attention(y, y, enable_gqa=True)", "F.scaled_dot_product_attention(x, y, y, enable_gqa=True)",
    floats(1, 4, 5, 4), floats(1, 2, 5, 4), tolerance=5e-5,
)  # fmt: skip
TABLE.add(
    "x.scaled_dot_product_attention(y, y, z | True)", "F.scaled_dot_product_attention(x, y, y, z | True)",
    floats(2, 5, 4), floats(2, 5, 4), bools(5, 5), tolerance=5e-5,
)  # fmt: skip

# --- losses

_classes = given([0, 4, 2, 2, 1, 3], "int64")
for _r in ("mean", "sum", "none"):
    for _smooth in (0.0, 0.1):
        for _ignored in (None, 2):
            _ours = f"reduction={_r!r}, label_smoothing={_smooth}"
            _theirs = f"{_ours}, ignore_index={-100 if _ignored is None else _ignored}"
            TABLE.add(
                f"x.cross_entropy(y, {_ours}, ignore_index={_ignored})", f"F.cross_entropy(x, y, {_theirs})",
                floats(6, 5), _classes, views=("transposed", "expanded"),
            )  # fmt: skip
            TABLE.add(
                f"x.cross_entropy(y, {_ours}, weight=z.detach(), ignore_index={_ignored})",
                f"F.cross_entropy(x, y, z.detach(), {_theirs})", floats(6, 5), _classes, floats(5, low=0.1),
            )  # fmt: skip
        TABLE.add(
            f"x.cross_entropy(y.softmax(1), {_ours})", f"F.cross_entropy(x, y.softmax(1), {_ours})", floats(4, 5),
            floats(4, 5), tolerance=5e-5,
        )  # fmt: skip
        TABLE.add(
            f"x.cross_entropy(y, {_ours})", f"F.cross_entropy(x, y, {_ours})", floats(2, 3, 4),
            ints(2, 4, low=0, high=2, dtype="int64"),
        )  # fmt: skip
    TABLE.add(f"x.log_softmax(1).nll_loss(y, reduction={_r!r})", f"F.nll_loss(x.log_softmax(1), y, reduction={_r!r})", floats(6, 5), _classes)  # fmt: skip
    TABLE.add(
        f"x.log_softmax(1).nll_loss(y, z.detach(), 2, {_r!r})",
        f"F.nll_loss(x.log_softmax(1), y, z.detach(), ignore_index=2, reduction={_r!r})", floats(6, 5), _classes,
        floats(5, low=0.1),
    )  # fmt: skip
    for _delta in (0.5, 1.0):
        TABLE.add(
            f"x.huber_loss(y, {_r!r}, {_delta})", f"F.huber_loss(x, y, reduction={_r!r}, delta={_delta})", floats(4, 3),
            floats(4, 3), views=("transposed",),
        )  # fmt: skip
    TABLE.add(
        f"x.sigmoid().binary_crossentropy(y, {_r!r})", f"F.binary_cross_entropy(x.sigmoid(), y, reduction={_r!r})",
        floats(4, 3), floats(4, 3, low=0.1, high=0.9), gradient=False,
    )  # fmt: skip
    TABLE.add(
        f"x.binary_crossentropy_logits(y, {_r!r})", f"F.binary_cross_entropy_with_logits(x, y, reduction={_r!r})",
        floats(4, 3, low=-20, high=20), floats(4, 3, low=0, high=1), views=("transposed", "flipped"),
    )  # fmt: skip
    TABLE.add(
        f"x.binary_crossentropy_logits(y, {_r!r}, z.detach())",
        f"F.binary_cross_entropy_with_logits(x, y, reduction={_r!r}, pos_weight=z.detach())", floats(4, 3),
        floats(4, 3, low=0, high=1), floats(3, low=0.5),
    )  # fmt: skip
    for _log in (False, True):
        TABLE.add(
            f"x.kl_div(y, {_r!r}, {_log})", f"F.kl_div(x, y, reduction={_r!r}, log_target={_log})", floats(4, 3),
            floats(4, 3, low=0.1, high=1),
        )  # fmt: skip
    TABLE.add(
        f"x.sparse_categorical_crossentropy(y, reduction={_r!r})", f"F.cross_entropy(x, y, reduction={_r!r})",
        floats(6, 5), _classes,
    )  # fmt: skip
TABLE.add(
    "x.kl_div(y, 'batchmean')", "F.kl_div(x, y, reduction='batchmean')", floats(4, 3), floats(4, 3, low=0.1)
)

# --- linear systems and decompositions: of matrices that are far from singular

for _n in (1, 3, 4):
    _eye = f"{math.floor(2 * _n)} * "
    _a = f"(x + {_eye}Tensor.eye({_n}))"
    _t = f"(x + {_eye}torch.eye({_n}))"
    _x = floats(2, _n, _n)
    TABLE.add(f"{_a}.inv()", f"torch.linalg.inv({_t})", _x, tolerance=1e-4, second=_n == 3)
    TABLE.add(f"{_a}.det()", f"torch.linalg.det({_t})", _x, tolerance=1e-3)
    TABLE.add(f"{_a}.solve(y)", f"torch.linalg.solve({_t}, y)", _x, floats(2, _n, 2), tolerance=1e-4)
    TABLE.add(
        f"(x @ x.mT + {_eye}Tensor.eye({_n})).cholesky()",
        f"torch.linalg.cholesky(x @ x.mT + {_eye}torch.eye({_n}))", _x, tolerance=1e-4,
    )  # fmt: skip
    TABLE.add(f"{_a}.qr()", f"torch.linalg.qr({_t})", _x, tolerance=1e-3)
    TABLE.add(f"{_a}.svd(False)[1]", f"torch.linalg.svdvals({_t})", _x, tolerance=1e-3)
    TABLE.add(
        f"{_a}.triangular_solve(y)", f"torch.linalg.solve_triangular({_t}.tril(), y, upper=False)", _x,
        floats(2, _n, 2), tolerance=1e-4,
    )  # fmt: skip

# --- windows that follow from the size of the result

for _dims, _shape, _sizes in (
    (1, (2, 3, 7), (3, 7, 1, 9)), (1, (3, 8), (4,)), (2, (1, 2, 7, 6), ((3, 2), (4, None), 5, (7, 6))), (3, (1, 2, 5, 4, 3), ((2, 3, 2), 1)),
):  # fmt: skip
    for _size in _sizes:
        TABLE.add(
            f"x.adaptive_avg_pool{_dims}d({_size})",
            f"F.adaptive_avg_pool{_dims}d(x, {_size})",
            floats(*_shape),
        )
        TABLE.add(
            f"x.adaptive_max_pool{_dims}d({_size})",
            f"F.adaptive_max_pool{_dims}d(x, {_size})",
            floats(*_shape),
        )
        TABLE.add(
            f"x.adaptive_max_pool{_dims}d({_size}, True)", f"F.adaptive_max_pool{_dims}d(x, {_size}, True)", floats(*_shape),
            gradient=False,
        )  # fmt: skip

# --- sampling

for _align in (False, True):
    TABLE.add(
        f"x.affine_grid((2, 1, 3, 4), {_align})", f"F.affine_grid(x, [2, 1, 3, 4], align_corners={_align})", floats(2, 2, 3),
        second=True,
    )  # fmt: skip
    TABLE.add(
        f"x.affine_grid((1, 1, 2, 1, 4), {_align})", f"F.affine_grid(x, [1, 1, 2, 1, 4], align_corners={_align})", floats(1, 3, 4)
    )  # fmt: skip
    for _mode in ("bilinear", "nearest", "bicubic"):
        for _padding in ("zeros", "border", "reflection"):
            TABLE.add(
                f"x.grid_sample(y, {_mode!r}, {_padding!r}, {_align})", f"F.grid_sample(x, y, {_mode!r}, {_padding!r}, {_align})",
                floats(2, 3, 4, 5), floats(2, 3, 2, 2, low=-1.7, high=1.7), tolerance=1e-4,
            )  # fmt: skip
    TABLE.add(
        f"x.grid_sample(y, align_corners={_align})", f"F.grid_sample(x, y, align_corners={_align})", floats(1, 2, 3, 4, 2),
        floats(1, 2, 3, 2, 3, low=-1.3, high=1.3), tolerance=1e-4,
    )  # fmt: skip

# --- losses of margins, and of sequences


def shaped(values: tuple[float, ...], shape: tuple[int, ...], dtype: str = "float32") -> Operand:
    return given(np.array(values).reshape(shape), dtype)


for _r in ("mean", "sum", "none"):
    for _f, _operands in (
        ("margin_ranking_loss(y, z, 0.3, reduction={r})", (floats(6), floats(6), given((1.0, -1.0, 1.0, 1.0, -1.0, -1.0)))),
        ("hinge_embedding_loss(y, 0.7, reduction={r})", (floats(2, 2), shaped((1.0, -1.0, -1.0, 1.0), (2, 2)))),
        ("cosine_embedding_loss(y, z, 0.1, reduction={r})", (floats(3, 4), floats(3, 4), given((1.0, -1.0, -1.0)))),
        ("triplet_margin_loss(y, z, 0.8, reduction={r})", (floats(4, 3), floats(4, 3), floats(4, 3))),
        ("triplet_margin_loss(y, z, 2.0, 1.0, swap=True, reduction={r})", (floats(4, 3), floats(4, 3), floats(4, 3))),
        ("soft_margin_loss(y.detach(), reduction={r})", (floats(2, 2), shaped((1.0, -1.0, -1.0, 1.0), (2, 2)))),
        ("multi_margin_loss(y, reduction={r})", (floats(3, 4), given((2, 0, 3), dtype="int64"))),
        ("multi_margin_loss(y, 2, 0.8, z.detach(), reduction={r})", (floats(3, 4), given((2, 0, 3), dtype="int64"), floats(4, low=0.2))),
        ("multilabel_margin_loss(y, reduction={r})", (floats(2, 3), shaped((2, -1, 0, 1, 0, -1), (2, 3), dtype="int64"))),
        ("multilabel_soft_margin_loss(y, z, reduction={r})", (floats(2, 2), shaped((1.0, 0.0, 0.0, 1.0), (2, 2)), floats(2, low=0.2))),
        ("poisson_nll_loss(y, reduction={r})", (floats(2, 3), shaped((0.0, 1.0, 2.0, 5.0, 3.0, 1.0), (2, 3)))),
        ("poisson_nll_loss(y, False, True, reduction={r})", (floats(2, 3, low=0.2), shaped((4.0, 1.0, 2.0, 5.0, 3.0, 1.0), (2, 3)))),
    ):  # fmt: skip
        _call = _f.format(r=repr(_r))
        TABLE.add(f"x.{_call}", f"F.{_call.replace('(', '(x, ', 1)}", *_operands)
    for _zero in (False, True) if _r == "none" else (True,):
        # the second target is too long for its input, the last is empty
        _call = f"ctc_loss({{}}, [7, 3, 6, 7], [3, 3, 2, 0], 0, {_r!r}, {_zero})"
        TABLE.add(
            f"x.log_softmax(-1).{_call.format('y')}", f"F.{_call.format('x.log_softmax(-1), y')}", floats(7, 4, 5),
            shaped((1, 2, 2, 3, 3, 4, 2, 1, 0, 1, 1, 1), (4, 3), dtype="int64"), tolerance=5e-5, gradient=_zero,
        )  # fmt: skip
TABLE.add(  # far from each other: the unit vector between equal ones is rounding
    "x.pairwise_distance(y + 4)", "F.pairwise_distance(x, y + 4)", floats(3, 4), floats(3, 4), second=True
)
TABLE.add(
    "x.pairwise_distance(y, 1.0, 0.1, True)",
    "F.pairwise_distance(x, y, 1.0, 0.1, True)",
    floats(3, 4),
    floats(3, 4),
)
