"""Initialisation in place: `nn.init.kaiming_uniform_(layer.weight)`, with torch's names, ranges and defaults.

Each function writes to its Tensor, without recording a gradient, and returns it. Random numbers come from the
generator of `Tensor.manual_seed`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from polygrad.dtype import dtypes, sum_dtype
from polygrad.errors import ArgumentError, DTypeError, ShapeError
from polygrad.helpers import prod
from polygrad.tensor.tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

# The gain of weights that preserves the variance after a nonlinearity.
_GAINS = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "sigmoid"), 1.0),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1.0),
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor for the standard deviation of weights before `nonlinearity`.

    'linear', 'conv1d', ..., 'sigmoid', 'tanh', 'relu', 'selu', or 'leaky_relu', whose slope below 0 is
    `param` (0.01 unless given). Raises ArgumentError.

    >>> round(nn.init.calculate_gain('relu'), 4)
    1.4142
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise ArgumentError(
            f"calculate_gain: expected one of {', '.join(_GAINS)} or leaky_relu, got {nonlinearity!r}"
        )
    return _GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform in [a, b). Raises ArgumentError for a > b, DTypeError unless it is of floats.

    >>> (nn.init.uniform_(Tensor.zeros(2), 2.0, 4.0) >= 2).tolist()
    [True, True]
    """
    if not a <= b:
        raise ArgumentError(f"uniform_: expected a <= b, got {a} and {b}")
    return _fill("uniform_", tensor, lambda dtype: _rand(tensor, dtype) * (b - a) + a)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal with that mean and standard deviation. Raises ArgumentError for a negative one, DTypeError.

    >>> nn.init.normal_(Tensor.zeros(2), 3.0, 0.0).tolist()
    [3.0, 3.0]
    """
    if not std >= 0:
        raise ArgumentError(f"normal_: expected std of at least 0, got {std}")
    return _fill("normal_", tensor, lambda dtype: _randn(tensor, dtype) * std + mean)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> Tensor:
    """Normal, truncated to [a, b]: by the inverse of the distribution function.

    Raises ArgumentError for a >= b or std <= 0, DTypeError.

    >>> (nn.init.trunc_normal_(Tensor.zeros(2), a=-0.5, b=0.5).abs() <= 0.5).tolist()
    [True, True]
    """
    if not a < b or not std > 0:
        raise ArgumentError(f"trunc_normal_: expected a < b and std over 0, got {a}, {b} and {std}")
    low, high = (math.erf((x - mean) / std / math.sqrt(2)) for x in (a, b))

    def values(dtype: Any) -> Tensor:
        part = _rand(tensor, dtypes.float64 if dtype is dtypes.float64 else dtypes.float32)
        z = _erfinv(part * (high - low) + low) * (std * math.sqrt(2)) + mean
        return z.clamp(a, b)

    return _fill("trunc_normal_", tensor, values)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """`val` everywhere.

    >>> nn.init.constant_(Tensor.zeros(2), 3.0).tolist()
    [3.0, 3.0]
    """
    return _write(tensor, tensor.full_like(val))


def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere.

    >>> nn.init.zeros_(Tensor.ones(2)).tolist()
    [0.0, 0.0]
    """
    return constant_(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere.

    >>> nn.init.ones_(Tensor.zeros(2)).tolist()
    [1.0, 1.0]
    """
    return constant_(tensor, 1)


def eye_(tensor: Tensor) -> Tensor:
    """1 on the diagonal of a matrix, 0 elsewhere. Raises ShapeError.

    >>> nn.init.eye_(Tensor.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: expected a matrix, got shape {tensor.shape}")
    rows, columns = tensor.shape
    return _write(tensor, Tensor.eye(rows, columns, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The identity as a convolution's weight (out, in, *kernel), in each of `groups`.

    Raises ShapeError for other than 1 to 3 axes of a kernel, or outputs that `groups` do not divide.

    >>> nn.init.dirac_(Tensor.zeros(1, 1, 3)).tolist()
    [[[0.0, 1.0, 0.0]]]
    """
    if not 3 <= tensor.ndim <= 5 or groups < 1 or tensor.shape[0] % groups:
        raise ShapeError(
            f"dirac_: expected (n * {groups}, in, *kernel) with a kernel of 1 to 3 axes, got {tensor.shape}"
        )
    places = [
        Tensor.arange(n, device=tensor.device).reshape([n if j == i else 1 for j in range(tensor.ndim)])
        for i, n in enumerate(tensor.shape)
    ]
    passes = (places[0] % (tensor.shape[0] // groups)).eq(places[1])
    for place, n in zip(places[2:], tensor.shape[2:], strict=True):
        passes = passes & place.eq(n // 2)
    return _write(tensor, passes.cast(tensor.dtype))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01) -> Tensor:
    """Normal with standard deviation `std`; a fraction `sparsity` of each column is 0 (Martens, 2010).

    Raises ShapeError unless it is a matrix, ArgumentError, DTypeError.

    >>> (nn.init.sparse_(Tensor.zeros(4, 2), 0.5) == 0).sum(0).tolist()
    [2, 2]
    """
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_: expected a matrix, got shape {tensor.shape}")
    if not 0 <= sparsity <= 1 or not std >= 0:
        raise ArgumentError(
            f"sparse_: expected sparsity in 0..1 and std of at least 0, got {sparsity}, {std}"
        )
    zeros = math.ceil(sparsity * tensor.shape[0])

    def values(dtype: Any) -> Tensor:
        ranks = _rand(tensor, dtypes.float32).argsort(0).argsort(0)
        return (ranks < zeros).where(0.0, _randn(tensor, dtype) * std)

    return _fill("sparse_", tensor, values)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform in ±gain * sqrt(6 / (fan in + fan out)) (Glorot and Bengio, 2010). Raises ShapeError.

    >>> (nn.init.xavier_uniform_(Tensor.zeros(2, 4)).abs() <= 1).all().item()
    True
    """
    bound = gain * math.sqrt(6 / sum(_fans("xavier_uniform_", tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal with deviation gain * sqrt(2 / (fan in + fan out)). Raises ShapeError.

    >>> nn.init.xavier_normal_(Tensor.zeros(2, 4)).shape
    (2, 4)
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans("xavier_normal_", tensor))))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Uniform in ±gain * sqrt(3 / fan) (He et al., 2015).

    `mode`: 'fan_in' keeps the variance on the way forward, 'fan_out' that of gradients. `nonlinearity`, and
    `a` for the leaky one, as in `calculate_gain`. Raises ShapeError, ArgumentError.

    >>> (nn.init.kaiming_uniform_(Tensor.zeros(2, 6)).abs() <= 1).all().item()
    True
    """
    bound = math.sqrt(3) * _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Normal with deviation gain / sqrt(fan); arguments as for `kaiming_uniform_`.

    >>> nn.init.kaiming_normal_(Tensor.zeros(2, 6)).shape
    (2, 6)
    """
    return normal_(tensor, 0.0, _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity))


def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """A matrix, the first axis by all others, with orthonormal rows (or columns, if these are fewer), times
    `gain` (Saxe et al., 2013). Raises ShapeError.

    By 30 steps of the Newton-Schulz iteration from random numbers, in float32.

    >>> w = nn.init.orthogonal_(Tensor.zeros(2, 3))
    >>> (w @ w.T).round().abs().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: expected at least 2 axes, got shape {tensor.shape}")
    rows, columns = tensor.shape[0], prod(tensor.shape[1:])

    def values(dtype: Any) -> Tensor:
        x = Tensor.randn(min(rows, columns), max(rows, columns), device=tensor.device)
        x = x / x.square().sum().sqrt()
        for _ in range(30):
            x = (x * 1.5 - (x @ x.T) @ x * 0.5).realize()
        return (x if rows <= columns else x.T).reshape(tensor.shape) * gain

    return _fill("orthogonal_", tensor, values)


def _fans(name: str, tensor: Tensor) -> tuple[int, int]:
    """The fan in and the fan out of a weight (out, in, *kernel)."""
    if tensor.ndim < 2:
        raise ShapeError(f"{name}: expected at least 2 axes, (out, in, *kernel), got shape {tensor.shape}")
    window = prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def _kaiming_std(name: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fans = dict(zip(("fan_in", "fan_out"), _fans(name, tensor), strict=True))
    if mode not in fans:
        raise ArgumentError(f"{name}: expected mode 'fan_in' or 'fan_out', got {mode!r}")
    return calculate_gain(nonlinearity, a) / math.sqrt(fans[mode])


def _rand(tensor: Tensor, dtype: Any) -> Tensor:
    return Tensor.rand(*tensor.shape, dtype=dtype, device=tensor.device)


def _randn(tensor: Tensor, dtype: Any) -> Tensor:
    return Tensor.randn(*tensor.shape, dtype=dtype, device=tensor.device)


def _fill(name: str, tensor: Tensor, values: Callable[[Any], Tensor]) -> Tensor:
    """Write the result of `values`, computed in a dtype of at least 32 bits."""
    if not tensor.dtype.is_float:
        raise DTypeError(f"{name}: expected a tensor of floats, got {tensor.dtype}")
    if 0 in tensor.shape:
        return tensor
    with Tensor.no_grad():
        return _write(tensor, values(sum_dtype(tensor.dtype)).cast(tensor.dtype))


def _write(tensor: Tensor, values: Tensor) -> Tensor:
    with Tensor.no_grad():
        return tensor.assign(values)


def _erfinv(y: Tensor) -> Tensor:
    """The inverse of erf: Giles' polynomials (2010, "Approximating the erfinv function"), to about 1e-6."""
    w = -((1 - y) * (1 + y)).log()
    near = _polynomial(
        w - 2.5,
        (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
         -0.00417768164, 0.246640727, 1.50140941),
    )  # fmt: skip
    far = _polynomial(
        w.maximum(0).sqrt() - 3,
        (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
         0.00943887047, 1.00167406, 2.83297682),
    )  # fmt: skip
    return (w < 5).where(near, far) * y


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Horner's rule, the highest power first."""
    out = x * 0 + coefficients[0]
    for c in coefficients[1:]:
        out = out * x + c
    return out
