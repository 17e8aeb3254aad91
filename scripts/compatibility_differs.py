"""Names that a package and we have, and that do not mean quite the same: what differs, in one line.

Where tinygrad and torch differ, tinygrad's meaning stays. tests/proofs shows of each that it differs in the
kinds said here and in no other; of what is said nowhere, that it does not differ.

Kinds, separated by commas: `value`, `dtype`, `shape`, `gradient`, `gradient dtype`, `results` (how many),
`refused` (by us alone), `accepted` (by us alone).
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """`places`: a regular expression of section places. `names`: separated by spaces."""

    places: str
    names: str
    kinds: str
    line: str

    def is_of(self, place: str, name: str) -> bool:
        return re.fullmatch(self.places, place) is not None and name in self.names.split()


_TENSOR, _TORCH, _TINY = r"torch(\.Tensor|\.nn\.functional)?", r"torch\..*|torch", r"tinygrad\.Tensor"

DIFFERENCES: tuple[Difference, ...] = (
    # --- tinygrad
    Difference(
        _TINY, "prod cumprod", "dtype", "small integers and bools are multiplied in int32 (uint32), as they are summed"
    ),
    Difference(
        _TINY, "max min argmax argmin", "refused", "of no elements: refused, as torch's"
    ),
    Difference(
        _TINY, "sparse_categorical_crossentropy", "refused", "of labels that name no class: refused, but for `ignore_index`"
    ),
    Difference(_TINY, "copysign", "dtype", "of integers: floats, as torch's"),
    Difference(
        _TINY, "cosh sinh erf var std", "value", "of integers and bools: computed in floats; tinygrad's are wrong there"
    ),
    Difference(
        _TINY, "cummax cummin", "value, gradient", "the position of the last of equals, as torch's, which has the gradient"
    ),
    Difference(
        _TINY, "sort", "gradient", "of equal elements each has its own gradient, as torch's; tinygrad's share it"
    ),
    Difference(_TINY, "std", "gradient", "of equal elements: 0; tinygrad's is NaN"),
    Difference(_TINY, "hardtanh", "gradient", "0 at both bounds, as torch's"),
    Difference(_TINY, "round", "dtype", "integers stay integers, as torch's"),
    Difference(_TINY, "scatter_reduce", "dtype, value", "the mean of integers is an integer, as torch's"),
    Difference(
        _TINY, "reshape view flatten squeeze unsqueeze", "value",
        "what is written to a view is in the original, as torch's",
    ),
    Difference(
        _TINY, "scaled_dot_product_attention", "value, gradient", "0 for a row whose mask attends to nothing, as torch's; tinygrad's is NaN"
    ),
    Difference(_TINY, "multinomial", "value", "draws other random numbers"),
    Difference(
        _TINY, "backward grad", "value", "a Tensor without axes has a gradient; that of tinygrad's may stay None"
    ),
    Difference(_TINY, "ufix", "dtype", "a whole number beside floats is a float; tinygrad's is an integer"),
    Difference(_TINY, "is_param", "value", "False of what is no leaf of a model, until `as_param` or an optimizer says so"),
    Difference(_TINY, "as_param", "accepted", "makes a parameter of any Tensor; tinygrad's makes a slot of a captured function"),
    Difference(r"tinygrad", "UOp", "value", "a node of our graph, whose ops are others"),
    Difference(r"tinygrad\.nn", "LSTMCell", "value", "biases start as torch's, at random; tinygrad's are 0"),
    Difference(r"tinygrad\.dtypes", "all floats fp8s", "value", "without formats of one vendor's GPUs and weak dtypes"),
    Difference(r"tinygrad\.dtypes", "finfo", "value", "all that torch's says; tinygrad's is (exponent bits, mantissa bits)"),
    Difference(r"tinygrad\.dtypes", "from_py", "value, refused", "of a number, the default dtype; tinygrad's is a weak one, and of lists too"),
    # --- torch: dtypes
    Difference(
        _TENSOR,
        "argmax argmin argsort sort topk kthvalue mode median cummax cummin argwhere nonzero searchsorted unique "
        "bincount count_nonzero multinomial randperm one_hot max_pool2d adaptive_max_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d",
        "dtype, value",
        "positions and counts are int32, the default integer, as tinygrad's; torch's are int64",
    ),
    Difference(
        _TENSOR, "one_hot", "accepted, refused",
        "`num_classes` is to be said, and a number that names no class is a row of zeros, as tinygrad's; torch refuses it",
    ),
    Difference(
        _TENSOR,
        "sum prod cumsum cumprod trace einsum arange full where vander square randint",
        "dtype, value",
        "integers are summed, multiplied and made in int32 (uint32), the default, as tinygrad's; torch's are int64",
    ),
    Difference(_TENSOR, "all any", "dtype", "bool of every dtype; torch's is uint8 of uint8"),
    Difference(
        _TENSOR, "masked_fill pad", "dtype, value",
        "a float in integers makes floats, as tinygrad's; torch rounds it to an integer",
    ),
    # --- torch: results and arguments
    Difference(
        _TENSOR, "max min", "results",
        "along an axis the values alone, as tinygrad's: `(x.max(1), x.argmax(1))` is torch's pair",
    ),
    Difference(
        _TENSOR, "var std", "shape",
        "the second argument is `keepdim`, as tinygrad's; torch's is `unbiased`: say `correction=`",
    ),
    Difference(_TENSOR, "allclose", "value", "a Tensor of one bool, as tinygrad's; torch's is a bool"),
    Difference(
        _TENSOR, "where", "value, gradient",
        "`cond.where(x, y)`, as tinygrad's: of `x.where(cond, y)` self is the condition",
    ),
    Difference(
        r"torch\.nn\.functional", "gelu", "value, gradient",
        "`approximate` is 'tanh' by default, as tinygrad's; torch's is 'none'",
    ),
    Difference(
        r"torch(\.nn\.functional)?", "conv2d conv_transpose2d", "shape, refused",
        "`groups` comes before `stride`, `dilation` before `padding`, as tinygrad's: say them by name",
    ),
    Difference(
        r"torch(\.nn\.functional)?", "max_pool2d avg_pool2d", "shape",
        "`dilation` comes before `padding`, as tinygrad's: say them by name",
    ),
    Difference(
        r"torch(\.nn\.functional)?", "max_pool2d", "gradient",
        "equal maxima of a window share the gradient, as tinygrad's; torch gives it to the first",
    ),
    Difference(
        r"torch\.nn\.functional", "linear", "refused",
        "`weight` is (in, out), as tinygrad's; torch's is (out, in). `nn.Linear.weight` is torch's",
    ),
    Difference(
        r"torch\.nn\.functional", "interpolate", "value, gradient, refused",
        "`mode` is 'linear' by default, in any number of axes, as tinygrad's; torch's is 'nearest'; there is no 'area'",
    ),
    Difference(
        r"torch\.nn\.functional", "cross_entropy", "value, gradient, refused",
        "no class is ignored by default, as tinygrad's: say `ignore_index=-100`",
    ),
    Difference(
        r"torch\.nn\.functional", "dropout", "value",
        "only within `Tensor.train()`, as tinygrad's; torch's has `training=True`",
    ),
    Difference(
        r"torch\.nn\.functional", "unfold", "shape, refused",
        "windows along one axis, as `torch.Tensor.unfold`; blocks of an image are `Tensor.pool`",
    ),
    Difference(_TENSOR, "svd", "value", "`full_matrices` is True by default, as tinygrad's and torch.linalg's"),
    Difference(
        r"torch\.Tensor", "T", "shape, refused",
        "the last two axes change places, as tinygrad's; torch's reverses all axes: `x.permute(2, 1, 0)`",
    ),
    Difference(
        _TENSOR, "reshape flatten ravel", "value",
        "a view of every Tensor: what is written to it is in the original. torch copies what is not contiguous",
    ),
    Difference(
        r"torch", "adaptive_max_pool1d", "results",
        "values alone, as `torch.nn.functional`'s: `return_indices=True` gives both",
    ),
    Difference(
        r"torch",
        "binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss hinge_embedding_loss kl_div "
        "margin_ranking_loss triplet_margin_loss",
        "shape",
        "the mean by default, as `torch.nn.functional`'s; this place of torch has numbers for `reduction`",
    ),
    Difference(
        r"torch(\.Tensor|\.fft)?",
        "fft ifft rfft irfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn hfft ihfft stft istft",
        "value", "complex numbers are pairs along a last axis of 2",
    ),
    Difference(_TENSOR, "sign", "value", "NaN of NaN; torch's is 0"),
    Difference(r"torch", "normal", "refused", "`Tensor.normal(*shape, mean=, std=)`, as tinygrad's"),
    Difference(r"torch", "randint", "refused", "`Tensor.randint(*shape, low=, high=)`, as tinygrad's"),
    Difference(r"torch", "polygamma", "refused", "`x.polygamma(n)`, as torch.Tensor's"),
    Difference(r"torch", "gradient", "refused", "of a function, with respect to Tensors, as tinygrad's; differences are `diff`"),
    Difference(r"torch", "vmap", "refused", "`in_axes` and `out_axes`, as jax's; torch's are `in_dims`, `out_dims`"),
    Difference(r"torch\.Tensor", "data", "value", "a method that gives the bytes, as tinygrad's; `detach()` is torch's"),
    Difference(r"torch\.Tensor", "device", "value", "a string"),
    Difference(r"torch\.Tensor", "nbytes", "value", "a method, as tinygrad's"),
    Difference(r"torch\.Tensor", "requires_grad", "value", "None where nothing was said; torch's is False"),
    Difference(r"torch\.Tensor", "to", "refused", "to a device, as tinygrad's; dtypes are `cast`"),
    # --- torch: layers and optimizers
    Difference(
        r"torch\.nn", "Embedding", "value",
        "starts as tinygrad's, uniform by Glorot; torch's has deviation 1",
    ),
    Difference(
        r"torch\.optim", "Adam AdamW", "refused",
        "the third and fourth arguments are `b1` and `b2`, as tinygrad's; torch's third is `betas`",
    ),
    Difference(
        r"torch\.optim", "Muon", "value",
        "Newton and Schulz's steps are in the parameters' dtype, as tinygrad's; torch's are in bfloat16",
    ),
)  # fmt: skip


def differences_of(place: str, name: str) -> list[Difference]:
    return [d for d in DIFFERENCES if d.is_of(place, name)]


_FOURIER = "fft ifft rfft irfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift"
# Names whose meaning cannot be compared call by call: the tests of ours that show it.
PROVED_ELSEWHERE: dict[str, str] = {
    "tinygrad.Tensor.custom_kernel": "tests/tensor/test_custom_kernel.py",
    "tinygrad.Tensor.from_blob": "tests/tensor/test_sources.py",
    "tinygrad.Tensor.hash": "tests/tensor/test_new_names.py",
    "tinygrad.Tensor.keccak": "tests/tensor/test_new_names.py",
    "tinygrad.Tensor.shard": "tests/engine/test_sharding.py",
    "tinygrad.Tensor.shard_": "tests/engine/test_sharding.py",
    "tinygrad.Tensor.shard_like": "tests/engine/test_sharding.py",
    "tinygrad.fetch": "tests/tensor/test_downloads.py",
    "tinygrad.nn.state.fs_load": "tests/nn/test_archives.py",
    "tinygrad.nn.state.fs_store": "tests/nn/test_archives.py",
    "tinygrad.nn.state.safe_load_metadata": "tests/nn/test_state.py",
    "torch.from_dlpack": "tests/tensor/test_dlpack.py",
    **{
        f"{place}.{name}": "tests/tensor/test_spectra.py"
        for place in ("torch", "torch.Tensor")
        for name in ("stft", "istft")
    },
    **{f"torch.fft.{name}": "tests/tensor/test_spectra.py" for name in _FOURIER.split()},
    "torch.nn.Buffer": "tests/nn/test_parameters.py",
    "torch.nn.Parameter": "tests/nn/test_parameters.py",
    "torch.optim.LBFGS": "tests/nn/test_param_groups.py",
    "torch.optim.lr_scheduler.ReduceLROnPlateau": "tests/nn/test_optimizers.py",
    "tinygrad.Tensor.from_url": "tests/tensor/test_downloads.py",
    "torch.Tensor.is_leaf": "tests/test_autograd_situations.py",
    "torch.Tensor.register_hook": "tests/test_autograd_situations.py",
    "torch.Tensor.retain_grad": "tests/test_autograd_situations.py",
    "torch.is_grad_enabled": "tests/test_autograd_situations.py",
}
