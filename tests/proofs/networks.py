"""Calls of products, decompositions, convolutions, pooling, losses and attention."""

from __future__ import annotations

import math

from proofs.calls import TIES, Calls, laid
from tensor.tables.rows import bools, floats, given, ints

CALLS = Calls()
PRODUCTS = (
    (floats(3, 4), floats(4, 5)), (laid(floats(3, 4), "transposed"), floats(4, 2)), (ints(3, 4), ints(4, 2)),
    (floats(3, 4, dtype="float16"), floats(4, 2, dtype="float16")), (floats(3, 0), floats(0, 2)),
)  # fmt: skip
CALLS.add("matmul dot mm", "x, y", *PRODUCTS)
CALLS.add(
    "matmul",
    "x, y",
    (floats(2, 3, 4), floats(4)),
    (floats(4), floats(4)),
    (floats(2, 1, 3, 4), floats(5, 4, 2)),
)
CALLS.add("dot inner vdot", "x, y", (floats(4), floats(4)), (ints(4), ints(4)))
CALLS.add("matmul dot mm", "x, y", (floats(3, 4), floats(3, 4)), is_refused=True)
CALLS.add("mm bmm dot", "x, y", (floats(4), floats(5)), is_refused=True)
CALLS.add(
    "bmm", "x, y", (floats(2, 3, 4), floats(2, 4, 5)), (laid(floats(2, 3, 4), "transposed"), floats(2, 4, 2))
)
CALLS.add("mv", "x, y", (floats(3, 4), floats(4)))
CALLS.add("inner", "x, y", (floats(2, 3), floats(4, 3)))
CALLS.add("outer ger", "x, y", (floats(3), floats(4)), (ints(3), ints(4)))
CALLS.add("outer ger", "x, y", (floats(3, 2), floats(4)), is_refused=True)
CALLS.add("kron", "x, y", (floats(2, 3), floats(3, 2)), (ints(2), ints(3)))
CALLS.add("cross", ("x, y", "x, y, 1"), (floats(4, 3), floats(4, 3)))
CALLS.add(
    "addmm",
    ("x, y, z", "=f(x, y, z, beta=0.5, alpha=2.0)"),
    (floats(3, 5), floats(3, 4), floats(4, 5)),
    (floats(5), floats(3, 4), floats(4, 5)),
)
CALLS.add("addmv", ("x, y, z", "=f(x, y, z, beta=0.5, alpha=2.0)"), (floats(3), floats(3, 4), floats(4)))
CALLS.add(
    "baddbmm",
    ("x, y, z", "=f(x, y, z, beta=0.5, alpha=2.0)"),
    (floats(2, 3, 5), floats(2, 3, 4), floats(2, 4, 5)),
)
CALLS.add(
    "einsum",
    ("=f('ij,jk->ik', x, y)", "=f('ij,jk', x, y)", "=f('ij,jk->', x, y)", "=f('ij,jk->ki', x, y)"),
    (floats(3, 4), floats(4, 5)),
    (ints(3, 4), ints(4, 5)),
)
CALLS.add("einsum", ("=f('ii->i', x)", "=f('ii', x)", "=f('...ij->...ji', x)"), floats(3, 3))
CALLS.add("einsum", "=f('ij,jk->ik', x, x)", floats(3, 4), is_refused=True)
CALLS.add("matrix_power", ("x, 0", "x, 3", "x, 1"), floats(3, 3), floats(2, 3, 3), tolerance=1e-4)
CALLS.add("linear", "x, y", (floats(2, 4), floats(4, 3)), place="tinygrad")
CALLS.add("linear", ("x, y", "x, y, z"), (floats(2, 4), floats(3, 4), floats(3)), place="torch")
CALLS.add(
    "cdist",
    ("x, y", "x, y, 1.0", "x, y, inf"),
    (floats(4, 3), floats(5, 3)),
    (floats(2, 4, 3), floats(2, 5, 3)),
    tolerance=1e-4,
)
CALLS.add("pairwise_distance", ("x, y", "x, y, 1.0", "x, y, 2.0, 0.1, True"), (floats(4, 3), floats(4, 3)))
CALLS.add(
    "cosine_similarity",
    ("x, y", "x, y, 0", "x, y, -1, 0.1"),
    (floats(4, 3), floats(4, 3)),
    (given([[0.0, 0.0]]), given([[0.0, 1.0]])),
)
SPD = given([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
CALLS.add("det inverse cholesky", "x", SPD, floats(2, 2, low=1, high=2), tolerance=1e-4, gradient=False)
CALLS.add("det inverse", "x", SPD, tolerance=1e-4)
CALLS.add("det inverse cholesky", "x", floats(2, 3), is_refused=True)
CALLS.add("cholesky", "=f(x, upper=True)", SPD, tolerance=1e-4)
CALLS.add("qr", "=f(x)[0] @ f(x)[1]", floats(4, 3), floats(3, 3), floats(3, 4), tolerance=1e-4)
CALLS.add("qr", ("=[abs(t) for t in f(x)]",), floats(3, 3), floats(4, 3), tolerance=1e-4, gradient=False)
CALLS.add(
    "svd",
    ("=f(x)[1]", "=[t.shape for t in f(x)]"),
    floats(4, 3),
    floats(3, 3),
    tolerance=1e-4,
    gradient=False,
)
CALLS.add("solve", "x, y", (SPD, floats(3, 2)), tolerance=1e-4)
CALLS.add("triangular_solve", "x, y", (SPD, floats(3, 2)), tolerance=1e-4)
CALLS.add(
    "newton_schulz",
    "x, 3, (3.4445, -4.7750, 2.0315)",
    floats(3, 4),
    floats(4, 3),
    tolerance=1e-4,
    gradient=False,
)

# --- convolution and pooling
IMAGE, KERNEL = floats(2, 4, 5, 6), floats(4, 4, 3, 3)
CONV = (
    "x, y",
    "x, y, z",
    "=f(x, y, padding=1)",
    "=f(x, y, stride=2)",
    "=f(x, y, dilation=2)",
    "=f(x, y, stride=(2, 1), padding=(1, 0))",
)
CALLS.add("conv2d conv_transpose2d", CONV, (IMAGE, KERNEL, floats(4)), tolerance=1e-4)
CALLS.add(
    "conv2d conv_transpose2d",
    ("x, y, None, 2", "x, y, None, 1, 2"),
    (floats(2, 2, 5, 5), floats(2, 2, 2, 2)),
    tolerance=1e-4,
)
CALLS.add("conv2d", "=f(x, y, groups=2)", (IMAGE, floats(4, 2, 3, 3)), tolerance=1e-4)
CALLS.add(
    "conv_transpose2d",
    "=f(x, y, groups=2, stride=2, output_padding=1)",
    (IMAGE, floats(4, 2, 3, 3)),
    tolerance=1e-4,
)
CALLS.add("conv2d conv_transpose2d", "x, y", (IMAGE, floats(4, 3, 3, 3)), is_refused=True)
POOLS = (
    "x, 2",
    "x, (2, 3)",
    "x, 3, 2",
    "=f(x, 2, stride=1)",
    "=f(x, 3, stride=2, padding=1)",
    "=f(x, 2, ceil_mode=True)",
)
CALLS.add("max_pool2d avg_pool2d", POOLS, IMAGE, laid(IMAGE, "transposed"), tolerance=1e-4)
CALLS.add(
    "max_pool2d",
    ("=f(x, 2, dilation=2)", "x, 2, 2, 1"),
    IMAGE,
    given([[[[1.0, 1, 0, 2], [1, 1, 2, 2], [0, 0, 0, 0], [0, 5, 5, 5]]]]),
    given([[[[1.0, math.nan], [2, 3]]]]),
)
CALLS.add("max_pool2d", ("=f(x, 2, return_indices=True)",), IMAGE, place="tinygrad", gradient=False)
CALLS.add(
    "max_pool2d", ("=f(x, 2, return_indices=True)",), IMAGE, place="torch.nn.functional", gradient=False
)
CALLS.add("max_pool2d", "x, 2", given([[[[1.0, 1, 0, 2], [1, 1, 2, 2], [0, 0, 0, 0], [0, 5, 5, 5]]]]))
CALLS.add(
    "avg_pool2d",
    ("=f(x, 3, stride=2, padding=1, count_include_pad=False)", "x, 2, 1, 1"),
    IMAGE,
    tolerance=1e-4,
)
CALLS.add("max_pool2d avg_pool2d", "x, 9", IMAGE, is_refused=True)
CALLS.add(
    "max_unpool2d",
    ("x, y, 2", "x, y, (2, 2)", "=f(x, y, 2, output_size=(5, 5))"),
    (floats(1, 1, 2, 2), given([[[[0, 3], [8, 15]]]], "int64")),
)
for _d, _shape in ((1, (2, 3, 7)), (2, (2, 3, 5, 6)), (3, (1, 2, 4, 5, 4))):
    CALLS.add(
        f"adaptive_avg_pool{_d}d adaptive_max_pool{_d}d",
        ("x, 2", "x, 3", f"x, {(2,) * _d}"),
        floats(*_shape),
        tolerance=1e-4,
    )
    CALLS.add(
        f"adaptive_max_pool{_d}d",
        "=f(x, 2, return_indices=True)",
        floats(*_shape),
        place="torch.nn.functional",
    )
for _mode in ("nearest", "area", "nearest-exact", "bilinear"):
    CALLS.add("interpolate", f"=f(x, (3, 4), mode={_mode!r})", IMAGE, floats(1, 1, 2, 2))
CALLS.add("interpolate", ("=f(x, (7, 9), mode='bilinear', align_corners=True)",), IMAGE, place="torch")
CALLS.add(
    "interpolate",
    ("x, (7, 9)", "=f(x, (7, 9), mode='linear')", "=f(x, (3, 4), mode='linear', align_corners=True)"),
    IMAGE,
    place="tinygrad",
)
CALLS.add("interpolate", ("x, 4", "=f(x, scale_factor=2.0)"), IMAGE, place="torch")
CALLS.add(
    "grid_sample",
    ("x, y", "=f(x, y, align_corners=True)", "=f(x, y, mode='nearest')", "=f(x, y, padding_mode='border')"),
    (IMAGE, floats(2, 3, 4, 2, low=-1.3, high=1.3)),
    tolerance=2e-4,
)
CALLS.add("affine_grid", ("x, (2, 3, 4, 5)", "=f(x, (2, 3, 4, 5), align_corners=True)"), floats(2, 2, 3))

# --- normalisation, attention, random masks
CALLS.add("normalize", ("x", "x, 1.0", "x, 2.0, 0", "x, 2.0, -1, 0.5"), floats(3, 4), floats(2, 3, 4))
CALLS.add("normalize", ("x", "x, 1.0"), TIES, place="torch")
CALLS.add("layernorm", ("x", "x, (0, 1)", "x, -1, 0.1"), floats(3, 4))
CALLS.add(
    "batchnorm",
    ("x, y, y, z, z", "x, None, None, z, z"),
    (floats(2, 3, 4), floats(3), floats(3, low=0.5)),
    tolerance=1e-4,
)
QKV = (floats(2, 3, 4), floats(2, 5, 4), floats(2, 5, 6))
CALLS.add("scaled_dot_product_attention", ("x, y, z", "=f(x, y, z, is_causal=True)"), QKV, tolerance=1e-4)
CALLS.add(
    "scaled_dot_product_attention",
    "x, y, z, w",
    (*QKV, bools(3, 5)),
    (*QKV, given([[True] * 5, [False] * 5, [True, False] * 2 + [True]], "bool")),
    (*QKV, floats(3, 5)),
    tolerance=1e-4,
)
CALLS.add(
    "scaled_dot_product_attention",
    "=f(x, y, z, is_causal=True)",
    (floats(1, 4, 2), floats(1, 2, 2), floats(1, 2, 2)),
    tolerance=1e-4,
)
CALLS.add(
    "scaled_dot_product_attention",
    "=f(x, y, z, enable_gqa=True)",
    (floats(1, 4, 3, 2), floats(1, 2, 3, 2), floats(1, 2, 3, 2)),
    tolerance=1e-4,
)
CALLS.add("dropout alpha_dropout feature_alpha_dropout", "=f(x, 0.0)", floats(3, 4), gradient=False)
CALLS.add("dropout", "=moments(f(x, 0.25))", given([[1.0] * 100] * 100), place="torch", gradient=False)
CALLS.add("dropout alpha_dropout feature_alpha_dropout", "=f(x, 1.5)", floats(3), is_refused=True)

# --- losses
P = floats(3, 4, low=0.1, high=0.9)
LOSS = ("x, y", "=f(x, y, reduction='sum')", "=f(x, y, reduction='none')")
CALLS.add(
    "mse_loss l1_loss smooth_l1_loss huber_loss kl_div poisson_nll_loss",
    LOSS,
    (floats(3, 4), floats(3, 4, low=0.1)),
    (floats(), floats(low=0.1)),
)
CALLS.add("mse_loss l1_loss smooth_l1_loss huber_loss", LOSS, (TIES, TIES))
CALLS.add("kl_div", LOSS, (floats(3), given((0.0, 1.0, 0.5))), gradient=False)
CALLS.add("smooth_l1_loss", "=f(x, y, beta=0.25)", (floats(3, 4), floats(3, 4)))
CALLS.add("huber_loss", "=f(x, y, delta=0.25)", (floats(3, 4), floats(3, 4)))
CALLS.add("kl_div", ("=f(x, y, log_target=True)", "=f(x, y, reduction='batchmean')"), (floats(3, 4), P))
CALLS.add(
    "poisson_nll_loss",
    ("=f(x, y, log_input=False)", "=f(x, y, full=True)"),
    (floats(3, 4, low=0.1), floats(3, 4, low=0.1, high=4)),
)
CALLS.add("soft_margin_loss hinge_embedding_loss", LOSS, (floats(3, 4), given([[1.0, -1, 1, -1]] * 3)))
CALLS.add(
    "binary_cross_entropy binary_crossentropy",
    LOSS,
    (P, floats(3, 4, low=0, high=1)),
    (given((0.5, 1.0, 0.0)), given((0.5, 1.0, 0.0))),
)
CALLS.add(
    "binary_cross_entropy_with_logits binary_crossentropy_logits",
    LOSS,
    (floats(3, 4), P),
    (given((90.0, -90.0, 0.0)), given((0.0, 1.0, 1.0))),
)
CALLS.add(
    "binary_cross_entropy_with_logits binary_crossentropy_logits",
    "=f(x, y, pos_weight=z)",
    (floats(3, 4), P, floats(4, low=0.5)),
)
CALLS.add(
    "gaussian_nll_loss",
    ("x, y, z", "=f(x, y, z, full=True)", "=f(x, y, z, reduction='sum')"),
    (floats(3, 4), floats(3, 4), floats(3, 4, low=0.3)),
)
CLASSES = given((2, 0, 3), "int64")
CALLS.add("cross_entropy nll_loss", LOSS, (floats(3, 4), CLASSES))
CALLS.add("cross_entropy", ("=f(x, y, label_smoothing=0.1)",), (floats(3, 4), CLASSES), (floats(3, 4), P))
CALLS.add(
    "cross_entropy", ("x, y",), (floats(3, 4), P), (floats(2, 4, 3), ints(2, 3, low=0, high=3, dtype="int64"))
)
CALLS.add(
    "cross_entropy",
    ("=f(x, y, weight=z)", "=f(x, y, ignore_index=0)", "=f(x, y)"),
    (floats(3, 4), given((2, -100, 3), "int64"), floats(4, low=0.1)),
    place="torch",
)
CALLS.add(
    "nll_loss",
    ("x, y, z", "=f(x, y, ignore_index=0)", "=f(x, y, weight=z, ignore_index=2)"),
    (floats(3, 4), CLASSES, floats(4, low=0.1)),
)
CALLS.add(
    "sparse_categorical_crossentropy",
    (*LOSS, "=f(x, y, label_smoothing=0.1)", "=f(x, y, ignore_index=2)"),
    (floats(3, 4), CLASSES),
    (floats(3, 4), given((2, -1, 3), "int64")),
)
CALLS.add(
    "mse_loss l1_loss cross_entropy nll_loss kl_div",
    "=f(x, y, reduction='median')",
    (floats(3, 4), CLASSES),
    is_refused=True,
)
CALLS.add(
    "margin_ranking_loss",
    ("x, y, z", "=f(x, y, z, margin=0.5)"),
    (floats(4), floats(4), given((1.0, -1, 1, -1))),
    (given((1.0, 2, 3)), given((1.0, 2, 0)), given((1.0, -1, -1))),
)
CALLS.add(
    "cosine_embedding_loss",
    ("x, y, z", "=f(x, y, z, margin=0.2, reduction='none')"),
    (floats(4, 3), floats(4, 3), given((1.0, -1, 1, -1))),
)
CALLS.add(
    "triplet_margin_loss",
    ("x, y, z", "=f(x, y, z, swap=True)", "=f(x, y, z, margin=0.5, p=1.0)"),
    (floats(4, 3), floats(4, 3), floats(4, 3)),
    tolerance=1e-4,
)
CALLS.add("multi_margin_loss", ("x, y", "=f(x, y, p=2)", "=f(x, y, margin=0.5)"), (floats(3, 4), CLASSES))
CALLS.add("multilabel_margin_loss", "x, y", (floats(2, 4), given([[3, 0, -1, 1], [1, -1, 0, 0]], "int64")))
CALLS.add("multilabel_soft_margin_loss", "x, y", (floats(2, 4), given([[1.0, 0, 1, 1], [0, 0, 1, 0]])))
CALLS.add(
    "ctc_loss",
    ("=f(x.log_softmax(-1), y, (4, 4), (2, 1))", "=f(x.log_softmax(-1), y, (4, 4), (2, 1), reduction='sum')"),
    (floats(4, 2, 5), given([[1, 2], [3, 1]], "int64")),
    tolerance=2e-4,
)

# --- random numbers, by what they have in common; hashes; what changes Tensors
_ones = given([[1.0] * 100] * 100)
CALLS.add(
    "rand randn", ("=moments(f(100, 100))", "=f(2, 3).shape", "=f(2).dtype", "=f(2, dtype=dt.float64).dtype")
)
CALLS.add(
    "uniform glorot_uniform kaiming_normal kaiming_uniform scaled_uniform normal",
    ("=moments(f(100, 100))", "=f(2, 3).shape", "=f(2, 3).dtype"),
    place="tinygrad",
)
CALLS.add("normal", "=moments(f(0.0, 1.0, (100, 100)))", place="torch")
CALLS.add("uniform", "=moments(f(100, 100, low=-1.0, high=3.0))", place="tinygrad")
CALLS.add("randint", ("=moments(f(100, 100))", "=f(2, 3).dtype"), place="tinygrad")
CALLS.add("randint", ("=moments(f(0, 10, (100, 100)))", "=f(10, (2, 3)).dtype"), place="torch")
CALLS.add("rand_like randn_like", ("=moments(f(x))", "=f(x).dtype"), _ones, gradient=False)
CALLS.add("randperm", ("=f(9).sort()[0]", "=f(9).dtype", "=f(9).shape"), gradient=False)
CALLS.add(
    "multinomial",
    ("=f(x, 3).shape", "=f(x, 4, True).shape", "=f(x, 2, True).dtype", "=f(x, 4)"),
    given([0.0, 1.0, 0.0, 0.0]),
    floats(2, 5, low=0.5),
    gradient=False,
)
CALLS.add("bernoulli", ("=moments(f(x * 0.25))", "=f(x)"), _ones, gradient=False)
CALLS.add("manual_seed", "=f(3) and None")

# --- gradients, and what changes a Tensor
CALLS.add(
    "backward grad",
    (
        "=(lambda w: ((w * w * 3).sum().backward(), w.grad)[1])(kit.leaf(x))",
        "=(lambda w: ((w * 2).backward(kit.leaf(x).detach()), w.grad)[1])(kit.leaf(x))",
        "=(lambda w: [(w.exp().sum().backward(), w.grad + 0)[1] for _ in range(2)])(kit.leaf(x))",
    ),
    floats(3, 4),
    floats(),
    gradient=False,
)
CALLS.add("grad", "=x.grad", floats(3), gradient=False)
CALLS.add(
    "gradient",
    ("=f((x * x).sum(), x)", "=f((x * y).sum(), x, y)"),
    (floats(3, 4), floats(3, 4)),
    place="tinygrad",
    gradient=False,
)
CALLS.add("gradient", "=f(x)", floats(5), place="torch")
CALLS.add("assign replace", "=f(x + 0, y)", (floats(3, 4), floats(3, 4)), gradient=False)
CALLS.add("realize", ("x", "=f(x * 2 + 1)"), floats(3, 4), ints(3), gradient=False)
CALLS.add("to_", "x, None", floats(3), gradient=False)
CALLS.add("sequential", "=f(x, [Tensor.relu, lambda t: t * 2, Tensor.exp])", floats(3, 4))
CALLS.add("const", ("=f(3.5)", "=f(True)", "=f(2, dt.float16)"))
CALLS.add("is_param", "=x.is_param", floats(3), gradient=False)
CALLS.add("is_param_", ("=f(x).is_param", "=f(x, False).is_param"), floats(3), gradient=False)
CALLS.add("as_param", "x", floats(3), gradient=False, is_refused=True)
CALLS.add("ufix", ("x, 2", "x, 2.5"), floats(3, 4), ints(3), gradient=False)
CALLS.add("usum uprod", ("x, y", "x, 2, y"), (floats(3, 4), floats(3, 4)), (ints(3), ints(3)))
CALLS.add(
    "threefry",
    "x, y",
    (ints(5, low=0, high=2**31, dtype="uint64"), ints(5, low=0, high=2**31, dtype="uint64")),
)
CALLS.add("random_bits", "x, y, 7", (ints(2, low=0, high=2**31, dtype="uint32"), given([3], "uint32")))
CALLS.add("uop", "=type(x.uop).__name__", floats(3))
CALLS.add("vmap", ("=f(lambda t: t * 2 + t.sum())(x)", "=f(lambda t: t.exp(), in_dims=1)(x)"), floats(3, 4))
CALLS.add("get_num_threads", "=isinstance(f(), int)")
CALLS.add("set_num_threads", "=f(1)")
