"""Fused ops of onnxruntime, of the domain com.microsoft: activations, products and normalisations.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.onnx.op_table import op
from polygrad.onnx.ops import indexing_ops, linalg_ops, movement_ops, normalization_ops
from polygrad.onnx.ops.activations_ops import recurrent_activation
from polygrad.onnx.ops.convolution_ops import conv
from polygrad.onnx.values import floats_of
from polygrad.tensor.tensor import Tensor

DOMAIN = "com.microsoft"

op("GatherND", 1, domain=DOMAIN)(indexing_ops.gather_nd)
op("Range", 1, domain=DOMAIN)(movement_ops.range_)
op("Trilu", 1, domain=DOMAIN)(movement_ops.trilu)


@op("Gelu", 1, domain=DOMAIN)
def gelu(x: Tensor) -> Tensor:
    return x.gelu("none")


@op("FastGelu", 1, domain=DOMAIN)
def fast_gelu(x: Tensor, bias: Tensor | None = None) -> Tensor:
    return (x if bias is None else x + bias).gelu("tanh")


@op("BiasGelu", 1, domain=DOMAIN)
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    return (x + bias).gelu("none")


@op("QuickGelu", 1, domain=DOMAIN)
def quick_gelu(x: Tensor, *, alpha: float = 1.702) -> Tensor:
    return x * (x * alpha).sigmoid()


@op("BiasAdd", 1, domain=DOMAIN)
def bias_add(x: Tensor, bias: Tensor, skip: Tensor) -> Tensor:
    return x + bias + skip


@op("BiasSplitGelu", 1, domain=DOMAIN)
def bias_split_gelu(x: Tensor, bias: Tensor) -> Tensor:
    left, right = (x + bias).chunk(2, -1)
    return left * right.gelu("none")


@op("Inverse", 1, domain=DOMAIN)
def inverse(x: Tensor) -> Tensor:
    return x.inv()


# --- products


@op("FusedMatMul", 1, domain=DOMAIN)
def fused_matmul(
    a: Tensor,
    b: Tensor,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:
    """`transBatch`: the first axis is that of rows, the batch axes follow."""
    a, b = (_batch_last(x) if flag else x for x, flag in ((a, transBatchA), (b, transBatchB)))
    a, b = (x.transpose(-2, -1) if flag and x.ndim > 1 else x for x, flag in ((a, transA), (b, transB)))
    return a.dot(b) * alpha


def _batch_last(x: Tensor) -> Tensor:
    return x.permute(*range(1, x.ndim - 1), 0, x.ndim - 1)


@op("TransposeMatMul", 1, domain=DOMAIN)
def transpose_matmul(a: Tensor, b: Tensor, *, alpha: float = 1.0, transA: int = 0, transB: int = 0) -> Tensor:
    return fused_matmul(a, b, alpha=alpha, transA=transA, transB=transB)


@op("GemmFastGelu", 1, domain=DOMAIN)
def gemm_fast_gelu(x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    return fast_gelu(x.dot(w), bias)


@op("FusedGemm", 1, domain=DOMAIN)
def fused_gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    out = floats_of(linalg_ops.gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB))
    return recurrent_activation(activation)(out, activation_alpha, activation_beta) if activation else out


@op("FusedConv", 1, domain=DOMAIN)
def fused_conv(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    added: Tensor | None = None,
    *,
    activation: str = "",
    activation_params: list[float] | None = None,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    product = conv(
        x, w, bias, auto_pad=auto_pad, dilations=dilations, group=group, pads=pads, strides=strides
    )
    out = floats_of(product)
    out = out if added is None else out + added
    numbers = [*(activation_params or []), None, None]
    if activation == "Clip":
        return out.clamp(numbers[0], numbers[1])
    return recurrent_activation(activation)(out, numbers[0], numbers[1]) if activation else out


# --- normalisation


@op("SkipLayerNormalization", 1, domain=DOMAIN)
def skip_layer_normalization(
    x: Tensor,
    skip: Tensor,
    gamma: Tensor,
    beta: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The layer normalisation of x + skip + bias, which is the fourth output."""
    total = x + skip if bias is None else x + skip + bias
    return *normalization_ops.layer_normalization(total, gamma, beta, epsilon=epsilon), total


@op("SkipSimplifiedLayerNormalization", 1, domain=DOMAIN)
def skip_simplified_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None = None, *, epsilon: float = 1e-12
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    total = x + skip if bias is None else x + skip + bias
    inverse = (total.float().square().mean(-1, keepdim=True) + epsilon).rsqrt()
    return normalization_ops.rms_normalization(total, gamma, epsilon=epsilon), inverse * 0.0, inverse, total


@op("SimplifiedLayerNormalization", 1)
def simplified_layer_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> tuple[Tensor, Tensor]:
    """An op of onnxruntime, although it is in ONNX's own domain."""
    inverse = (x.float().square().mean(axis, keepdim=True) + epsilon).rsqrt()
    return normalization_ops.rms_normalization(
        x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type
    ), inverse


@op("EmbedLayerNormalization", 1, domain=DOMAIN)
def embed_layer_normalization(
    ids: Tensor,
    segments: Tensor | None,
    words: Tensor,
    positions: Tensor,
    segment_table: Tensor | None,
    gamma: Tensor,
    beta: Tensor,
    mask: Tensor | None = None,
    places: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """The normalised sum of embeddings of words, positions and segments, and the number of tokens that the
    mask leaves."""
    total = words[ids] + (positions[: ids.shape[1]].unsqueeze(0) if places is None else positions[places])
    if segments is not None and segment_table is not None:
        total = total + segment_table[segments]
    y, _, _ = normalization_ops.layer_normalization(total, gamma, beta, epsilon=epsilon)
    lengths = (
        Tensor.zeros(ids.shape[0], dtype=dtypes.int32) if mask is None else mask.cast(dtypes.int32).sum(1)
    )
    return y, lengths, total


def refuse(what: str, is_given: object) -> None:
    """Raises OnnxError if something is given that an op does not have here."""
    if is_given:
        raise OnnxError(f"{what} does not exist here")
