"""Normalisations, and their gradients."""

from __future__ import annotations

from typing import Any

from tests.parity.inputs import Inputs
from tests.parity.programs.registry import program, with_gradients


def affine_layernorm(x: Any, weight: Any, bias: Any) -> Any:
    return x.layernorm() * weight + bias


@program
def layernorm(lib: Any, make: Inputs) -> list[Any]:
    return [affine_layernorm(make.normal(8, 5, 32), make.normal(32), make.normal(32))]


@program
def layernorm_backward(lib: Any, make: Inputs) -> list[Any]:
    x, weight, bias = make.normal(8, 32), make.normal(32), make.normal(32)
    return with_gradients(make, affine_layernorm(x, weight, bias), x, weight, bias)


def rms(x: Any, weight: Any) -> Any:
    return x * ((x * x).mean(-1, keepdim=True) + 1e-6).rsqrt() * weight


@program
def rmsnorm(lib: Any, make: Inputs) -> list[Any]:
    return [rms(make.normal(8, 32), make.normal(32))]


@program
def rmsnorm_backward(lib: Any, make: Inputs) -> list[Any]:
    x, weight = make.normal(8, 32), make.normal(32)
    return with_gradients(make, rms(x, weight), x, weight)


def batch_statistics(x: Any) -> tuple[Any, Any]:
    mean = x.mean((0, 2, 3))
    centred = x - mean.reshape(1, -1, 1, 1)
    return mean, (centred * centred).mean((0, 2, 3))


@program
def batchnorm_train(lib: Any, make: Inputs) -> list[Any]:
    """The output, and the running statistics assigned."""
    x, weight, bias = make.normal(4, 6, 5, 5), make.normal(6), make.normal(6)
    running_mean, running_var = make.normal(6), make.positive(6)
    mean, var = batch_statistics(x)
    out = x.batchnorm(weight, bias, mean, (var + 1e-5).rsqrt())
    running_mean.assign(0.9 * running_mean + 0.1 * mean.detach())
    running_var.assign(0.9 * running_var + 0.1 * var.detach())
    return [out, running_mean, running_var]


@program
def batchnorm_train_backward(lib: Any, make: Inputs) -> list[Any]:
    x, weight, bias = make.normal(4, 6, 5, 5), make.normal(6), make.normal(6)
    mean, var = batch_statistics(x)
    return with_gradients(make, x.batchnorm(weight, bias, mean, (var + 1e-5).rsqrt()), x, weight, bias)


@program
def batchnorm_eval(lib: Any, make: Inputs) -> list[Any]:
    x, weight, bias, mean, var = make.normal(4, 6, 5, 5), *(make.positive(6) for _ in range(4))
    return [x.batchnorm(weight, bias, mean, (var + 1e-5).rsqrt()).relu()]


def group(x: Any, groups: int, weight: Any, bias: Any) -> Any:
    y = x.reshape(x.shape[0], groups, -1).layernorm(eps=1e-5).reshape(x.shape)
    return y * weight.reshape(1, -1, 1, 1) + bias.reshape(1, -1, 1, 1)


@program
def groupnorm(lib: Any, make: Inputs) -> list[Any]:
    return [group(make.normal(2, 8, 5, 5), 4, make.normal(8), make.normal(8))]


@program
def groupnorm_backward(lib: Any, make: Inputs) -> list[Any]:
    x, weight, bias = make.normal(2, 8, 5, 5), make.normal(8), make.normal(8)
    return with_gradients(make, group(x, 4, weight, bias), x, weight, bias)


@program
def cosine_similarity(lib: Any, make: Inputs) -> list[Any]:
    a, b = make.normal(8, 16), make.normal(6, 16)
    unit = lambda t: t / (t * t).sum(-1, keepdim=True).sqrt()
    return [unit(a) @ unit(b).transpose()]


@program
def standardize_columns(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(20, 7)
    return [(x - x.mean(0)) / x.std(0)]


@program
def sinkhorn(lib: Any, make: Inputs) -> list[Any]:
    """Rows and columns normalised in turn."""
    x = make.normal(12, 12).exp()
    for _ in range(3):
        x = x / x.sum(1, keepdim=True)
        x = x / x.sum(0, keepdim=True)
    return [x]
