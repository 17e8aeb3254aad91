"""Written by scripts/second_names.py: do not edit."""

from collections.abc import Sequence
from typing import Any, Literal, Self, overload

from polygrad.tensor.core.base import DTypeLike, TensorLike
from polygrad.tensor.fourier import Norm
from polygrad.tensor.reduce import Axes

class SecondNames:
    __slots__ = ()
    @overload
    def add(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def add(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def all(self, axis: Axes = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def all(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def amax(self, axis: Axes = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def amax(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def amin(self, axis: Axes = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def amin(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def aminmax(self, axis: Axes = ..., keepdim: bool = ...) -> tuple[Self, Self]: ...
    @overload
    def aminmax(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> tuple[Self, Self]: ...
    @overload
    def any(self, axis: Axes = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def any(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    @classmethod
    def arange(
        cls,
        start: Any,
        stop: Any = ...,
        step: Any = ...,
        dtype: DTypeLike | None = ...,
        device: str | None = ...,
        requires_grad: bool | None = ...,
    ) -> Self: ...
    @overload
    @classmethod
    def arange(
        cls,
        start: Any,
        *,
        stop: Any = ...,
        step: Any = ...,
        dtype: DTypeLike | None = ...,
        device: str | None = ...,
        requires_grad: bool | None = ...,
        end: Any = ...,
    ) -> Self: ...
    @overload
    def argmax(self, axis: int | None = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def argmax(
        self,
        *,
        axis: int | None = ...,
        keepdim: bool = ...,
        dim: int | None = ...,
        dims: int | None = ...,
        axes: int | None = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def argmin(self, axis: int | None = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def argmin(
        self,
        *,
        axis: int | None = ...,
        keepdim: bool = ...,
        dim: int | None = ...,
        dims: int | None = ...,
        axes: int | None = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def argsort(self, dim: int = ..., descending: bool = ...) -> Self: ...
    @overload
    def argsort(self, *, dim: int = ..., descending: bool = ..., axis: int = ...) -> Self: ...
    @overload
    def assign(self, x: TensorLike) -> Self: ...
    @overload
    def assign(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def avg_pool2d(
        self,
        kernel_size: int | Sequence[int] = ...,
        stride: Any = ...,
        dilation: Any = ...,
        padding: int | Sequence[int] = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
    ) -> Self: ...
    @overload
    def avg_pool2d(
        self,
        kernel_size: int | Sequence[int] = ...,
        stride: Any = ...,
        dilation: Any = ...,
        *,
        padding: int | Sequence[int] = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
        pad: int | Sequence[int] = ...,
    ) -> Self: ...
    @overload
    def batchnorm(
        self,
        weight: Self | None,
        bias: Self | None,
        mean: Self,
        invstd: Self,
        axis: int | tuple[int, ...] = ...,
    ) -> Self: ...
    @overload
    def batchnorm(
        self,
        weight: Self | None,
        bias: Self | None,
        mean: Self,
        invstd: Self,
        *,
        axis: int | tuple[int, ...] = ...,
        dim: int | tuple[int, ...] = ...,
        dims: int | tuple[int, ...] = ...,
        axes: int | tuple[int, ...] = ...,
    ) -> Self: ...
    @overload
    def binary_cross_entropy(self, Y: Self, reduction: str = ...) -> Self: ...
    @overload
    def binary_cross_entropy(self, *, Y: Self = ..., reduction: str = ..., target: Self = ...) -> Self: ...
    @overload
    def binary_cross_entropy_with_logits(
        self, Y: Self, reduction: str = ..., pos_weight: Self | None = ...
    ) -> Self: ...
    @overload
    def binary_cross_entropy_with_logits(
        self, *, Y: Self = ..., reduction: str = ..., pos_weight: Self | None = ..., target: Self = ...
    ) -> Self: ...
    @overload
    def binary_crossentropy(self, Y: Self, reduction: str = ...) -> Self: ...
    @overload
    def binary_crossentropy(self, *, Y: Self = ..., reduction: str = ..., target: Self = ...) -> Self: ...
    @overload
    def binary_crossentropy_logits(
        self, Y: Self, reduction: str = ..., pos_weight: Self | None = ...
    ) -> Self: ...
    @overload
    def binary_crossentropy_logits(
        self, *, Y: Self = ..., reduction: str = ..., pos_weight: Self | None = ..., target: Self = ...
    ) -> Self: ...
    @overload
    def bitwise_and(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def bitwise_and(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def bitwise_or(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def bitwise_or(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def bitwise_xor(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def bitwise_xor(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def bmm(self, x: TensorLike, reverse: bool = ..., dtype: DTypeLike | None = ...) -> Self: ...
    @overload
    def bmm(
        self,
        *,
        x: TensorLike = ...,
        reverse: bool = ...,
        dtype: DTypeLike | None = ...,
        other: TensorLike = ...,
    ) -> Self: ...
    @overload
    def broadcast_to(self, shape: Any, *args: Any) -> Self: ...
    @overload
    def broadcast_to(self, *, shape: Any = ..., size: Any = ...) -> Self: ...
    @overload
    def cat(self, *args: Self, dim: int = ...) -> Self: ...
    @overload
    def cat(self, *, dim: int = ..., axis: int = ...) -> Self: ...
    @overload
    def chunk(self, chunks: int, dim: int = ...) -> list[Self]: ...
    @overload
    def chunk(self, chunks: int, *, dim: int = ..., axis: int = ...) -> list[Self]: ...
    @overload
    def clamp(self, min_: TensorLike | None = ..., max_: TensorLike | None = ...) -> Self: ...
    @overload
    def clamp(
        self,
        *,
        min_: TensorLike | None = ...,
        max_: TensorLike | None = ...,
        min: TensorLike | None = ...,
        max: TensorLike | None = ...,
        a_min: TensorLike | None = ...,
        a_max: TensorLike | None = ...,
    ) -> Self: ...
    @overload
    def clamp_max(self, max_: TensorLike) -> Self: ...
    @overload
    def clamp_max(
        self, *, max_: TensorLike = ..., max: TensorLike = ..., a_max: TensorLike = ...
    ) -> Self: ...
    @overload
    def clamp_min(self, min_: TensorLike) -> Self: ...
    @overload
    def clamp_min(
        self, *, min_: TensorLike = ..., min: TensorLike = ..., a_min: TensorLike = ...
    ) -> Self: ...
    @overload
    def clip(self, min_: TensorLike | None = ..., max_: TensorLike | None = ...) -> Self: ...
    @overload
    def clip(
        self,
        *,
        min_: TensorLike | None = ...,
        max_: TensorLike | None = ...,
        min: TensorLike | None = ...,
        max: TensorLike | None = ...,
        a_min: TensorLike | None = ...,
        a_max: TensorLike | None = ...,
    ) -> Self: ...
    @overload
    def conv2d(
        self,
        weight: Self,
        bias: Self | None = ...,
        groups: int = ...,
        stride: int | Sequence[int] = ...,
        dilation: int | Sequence[int] = ...,
        padding: int | Sequence[int] = ...,
        dtype: DTypeLike | None = ...,
    ) -> Self: ...
    @overload
    def conv2d(
        self,
        weight: Self,
        bias: Self | None = ...,
        groups: int = ...,
        stride: int | Sequence[int] = ...,
        dilation: int | Sequence[int] = ...,
        *,
        padding: int | Sequence[int] = ...,
        dtype: DTypeLike | None = ...,
        pad: int | Sequence[int] = ...,
    ) -> Self: ...
    @overload
    def conv_transpose2d(
        self,
        weight: Self,
        bias: Self | None = ...,
        groups: int = ...,
        stride: int | Sequence[int] = ...,
        dilation: int | Sequence[int] = ...,
        padding: int | Sequence[int] = ...,
        output_padding: int | Sequence[int] = ...,
    ) -> Self: ...
    @overload
    def conv_transpose2d(
        self,
        weight: Self,
        bias: Self | None = ...,
        groups: int = ...,
        stride: int | Sequence[int] = ...,
        dilation: int | Sequence[int] = ...,
        *,
        padding: int | Sequence[int] = ...,
        output_padding: int | Sequence[int] = ...,
        pad: int | Sequence[int] = ...,
    ) -> Self: ...
    @overload
    def cosine_embedding_loss(
        self, other: Self, Y: Self, margin: float = ..., reduction: str = ...
    ) -> Self: ...
    @overload
    def cosine_embedding_loss(
        self, other: Self, *, Y: Self = ..., margin: float = ..., reduction: str = ..., target: Self = ...
    ) -> Self: ...
    @overload
    def cosine_similarity(self, other: Self, dim: int = ..., eps: float = ...) -> Self: ...
    @overload
    def cosine_similarity(
        self, other: Self, *, dim: int = ..., eps: float = ..., axis: int = ...
    ) -> Self: ...
    @overload
    def count_nonzero(self, axis: Axes = ...) -> Self: ...
    @overload
    def count_nonzero(
        self, *, axis: Axes = ..., dim: Axes = ..., dims: Axes = ..., axes: Axes = ...
    ) -> Self: ...
    @overload
    def cross(self, other: Self, dim: int = ...) -> Self: ...
    @overload
    def cross(self, other: Self, *, dim: int = ..., axis: int = ...) -> Self: ...
    @overload
    def cross_entropy(
        self,
        Y: Self,
        reduction: str = ...,
        label_smoothing: float = ...,
        weight: Self | None = ...,
        ignore_index: int | None = ...,
    ) -> Self: ...
    @overload
    def cross_entropy(
        self,
        *,
        Y: Self = ...,
        reduction: str = ...,
        label_smoothing: float = ...,
        weight: Self | None = ...,
        ignore_index: int | None = ...,
        target: Self = ...,
    ) -> Self: ...
    @overload
    def cummax(self, axis: int = ...) -> tuple[Self, Self]: ...
    @overload
    def cummax(
        self, *, axis: int = ..., dim: int = ..., dims: int = ..., axes: int = ...
    ) -> tuple[Self, Self]: ...
    @overload
    def cummin(self, axis: int = ...) -> tuple[Self, Self]: ...
    @overload
    def cummin(
        self, *, axis: int = ..., dim: int = ..., dims: int = ..., axes: int = ...
    ) -> tuple[Self, Self]: ...
    @overload
    def cumprod(self, axis: int) -> Self: ...
    @overload
    def cumprod(self, *, axis: int = ..., dim: int = ..., dims: int = ..., axes: int = ...) -> Self: ...
    @overload
    def cumsum(self, axis: int = ...) -> Self: ...
    @overload
    def cumsum(self, *, axis: int = ..., dim: int = ..., dims: int = ..., axes: int = ...) -> Self: ...
    @overload
    def diagonal(self, offset: int = ..., dim1: int = ..., dim2: int = ...) -> Self: ...
    @overload
    def diagonal(self, *, offset: int = ..., dim1: int = ..., dim2: int = ..., k: int = ...) -> Self: ...
    @overload
    def diff(self, n: int = ..., dim: int = ...) -> Self: ...
    @overload
    def diff(self, n: int = ..., *, dim: int = ..., axis: int = ...) -> Self: ...
    @overload
    def div(
        self, x: TensorLike, reverse: bool = ..., rounding_mode: Literal["trunc", "floor"] | None = ...
    ) -> Self: ...
    @overload
    def div(
        self,
        *,
        x: TensorLike = ...,
        reverse: bool = ...,
        rounding_mode: Literal["trunc", "floor"] | None = ...,
        other: TensorLike = ...,
    ) -> Self: ...
    @overload
    def divide(
        self, x: TensorLike, reverse: bool = ..., rounding_mode: Literal["trunc", "floor"] | None = ...
    ) -> Self: ...
    @overload
    def divide(
        self,
        *,
        x: TensorLike = ...,
        reverse: bool = ...,
        rounding_mode: Literal["trunc", "floor"] | None = ...,
        other: TensorLike = ...,
    ) -> Self: ...
    @overload
    @classmethod
    def einsum(cls, formula: str, *operands: Any, dtype: DTypeLike | None = ...) -> Self: ...
    @overload
    @classmethod
    def einsum(cls, *, formula: str = ..., dtype: DTypeLike | None = ..., equation: str = ...) -> Self: ...
    @overload
    def eq(self, x: TensorLike) -> Self: ...
    @overload
    def eq(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def expand(self, shape: Any, *args: Any) -> Self: ...
    @overload
    def expand(self, *, shape: Any = ..., size: Any = ...) -> Self: ...
    @overload
    def fft(self, n: int | None = ..., dim: int = ..., norm: Norm = ...) -> Self: ...
    @overload
    def fft(self, n: int | None = ..., *, dim: int = ..., norm: Norm = ..., axis: int = ...) -> Self: ...
    @overload
    def fft2(self, s: Sequence[int] | None = ..., dim: Sequence[int] = ..., norm: Norm = ...) -> Self: ...
    @overload
    def fft2(
        self,
        s: Sequence[int] | None = ...,
        *,
        dim: Sequence[int] = ...,
        norm: Norm = ...,
        axis: Sequence[int] = ...,
    ) -> Self: ...
    @overload
    def fftn(
        self, s: Sequence[int] | None = ..., dim: int | Sequence[int] | None = ..., norm: Norm = ...
    ) -> Self: ...
    @overload
    def fftn(
        self,
        s: Sequence[int] | None = ...,
        *,
        dim: int | Sequence[int] | None = ...,
        norm: Norm = ...,
        axis: int | Sequence[int] | None = ...,
    ) -> Self: ...
    @overload
    def fftshift(self, dim: int | Sequence[int] | None = ...) -> Self: ...
    @overload
    def fftshift(
        self, *, dim: int | Sequence[int] | None = ..., axis: int | Sequence[int] | None = ...
    ) -> Self: ...
    @overload
    def flip(self, axis: Any, *args: Any) -> Self: ...
    @overload
    def flip(self, *, axis: Any = ..., dim: Any = ..., dims: Any = ..., axes: Any = ...) -> Self: ...
    @overload
    def floor_divide(self, x: TensorLike) -> Self: ...
    @overload
    def floor_divide(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def fmax(self, x: TensorLike) -> Self: ...
    @overload
    def fmax(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def fmin(self, x: TensorLike) -> Self: ...
    @overload
    def fmin(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def fmod(self, x: TensorLike) -> Self: ...
    @overload
    def fmod(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    @classmethod
    def from_dlpack(cls, x: Any, copy: bool | None = ...) -> Self: ...
    @overload
    @classmethod
    def from_dlpack(cls, *, x: Any = ..., copy: bool | None = ..., other: Any = ...) -> Self: ...
    @overload
    @classmethod
    def full(
        cls,
        shape: Any,
        fill_value: Any,
        dtype: DTypeLike | None = ...,
        device: str | None = ...,
        requires_grad: bool | None = ...,
        contiguous: bool = ...,
        buffer: bool = ...,
    ) -> Self: ...
    @overload
    @classmethod
    def full(
        cls,
        *,
        shape: Any = ...,
        fill_value: Any = ...,
        dtype: DTypeLike | None = ...,
        device: str | None = ...,
        requires_grad: bool | None = ...,
        contiguous: bool = ...,
        buffer: bool = ...,
        size: Any = ...,
    ) -> Self: ...
    @overload
    def gather(self, dim: int, index: Self) -> Self: ...
    @overload
    def gather(self, *, dim: int = ..., index: Self = ..., axis: int = ...) -> Self: ...
    @overload
    def gaussian_nll_loss(
        self, Y: Self, variance: Self, full: bool = ..., eps: float = ..., reduction: str = ...
    ) -> Self: ...
    @overload
    def gaussian_nll_loss(
        self,
        *,
        Y: Self = ...,
        variance: Self = ...,
        full: bool = ...,
        eps: float = ...,
        reduction: str = ...,
        target: Self = ...,
    ) -> Self: ...
    @overload
    def gcd(self, x: TensorLike) -> Self: ...
    @overload
    def gcd(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def ge(self, x: TensorLike) -> Self: ...
    @overload
    def ge(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def glu(self, dim: int = ...) -> Self: ...
    @overload
    def glu(self, *, dim: int = ..., axis: int = ...) -> Self: ...
    @overload
    def greater(self, x: TensorLike) -> Self: ...
    @overload
    def greater(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def greater_equal(self, x: TensorLike) -> Self: ...
    @overload
    def greater_equal(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def gt(self, x: TensorLike) -> Self: ...
    @overload
    def gt(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def hfft(self, n: int | None = ..., dim: int = ..., norm: Norm = ...) -> Self: ...
    @overload
    def hfft(self, n: int | None = ..., *, dim: int = ..., norm: Norm = ..., axis: int = ...) -> Self: ...
    @overload
    def hinge_embedding_loss(self, Y: Self, margin: float = ..., reduction: str = ...) -> Self: ...
    @overload
    def hinge_embedding_loss(
        self, *, Y: Self = ..., margin: float = ..., reduction: str = ..., target: Self = ...
    ) -> Self: ...
    @overload
    def histc(self, bins: int = ..., min_: float = ..., max_: float = ...) -> Self: ...
    @overload
    def histc(
        self,
        bins: int = ...,
        *,
        min_: float = ...,
        max_: float = ...,
        min: float = ...,
        max: float = ...,
        a_min: float = ...,
        a_max: float = ...,
    ) -> Self: ...
    @overload
    def huber_loss(self, Y: Self, reduction: str = ..., delta: float = ...) -> Self: ...
    @overload
    def huber_loss(
        self, *, Y: Self = ..., reduction: str = ..., delta: float = ..., target: Self = ...
    ) -> Self: ...
    @overload
    def hypot(self, x: TensorLike) -> Self: ...
    @overload
    def hypot(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def ifft(self, n: int | None = ..., dim: int = ..., norm: Norm = ...) -> Self: ...
    @overload
    def ifft(self, n: int | None = ..., *, dim: int = ..., norm: Norm = ..., axis: int = ...) -> Self: ...
    @overload
    def ifft2(self, s: Sequence[int] | None = ..., dim: Sequence[int] = ..., norm: Norm = ...) -> Self: ...
    @overload
    def ifft2(
        self,
        s: Sequence[int] | None = ...,
        *,
        dim: Sequence[int] = ...,
        norm: Norm = ...,
        axis: Sequence[int] = ...,
    ) -> Self: ...
    @overload
    def ifftn(
        self, s: Sequence[int] | None = ..., dim: int | Sequence[int] | None = ..., norm: Norm = ...
    ) -> Self: ...
    @overload
    def ifftn(
        self,
        s: Sequence[int] | None = ...,
        *,
        dim: int | Sequence[int] | None = ...,
        norm: Norm = ...,
        axis: int | Sequence[int] | None = ...,
    ) -> Self: ...
    @overload
    def ifftshift(self, dim: int | Sequence[int] | None = ...) -> Self: ...
    @overload
    def ifftshift(
        self, *, dim: int | Sequence[int] | None = ..., axis: int | Sequence[int] | None = ...
    ) -> Self: ...
    @overload
    def ihfft(self, n: int | None = ..., dim: int = ..., norm: Norm = ...) -> Self: ...
    @overload
    def ihfft(self, n: int | None = ..., *, dim: int = ..., norm: Norm = ..., axis: int = ...) -> Self: ...
    @overload
    def index_add(self, dim: int, index: Self, source: Self, alpha: float = ...) -> Self: ...
    @overload
    def index_add(
        self, *, dim: int = ..., index: Self = ..., source: Self = ..., alpha: float = ..., axis: int = ...
    ) -> Self: ...
    @overload
    def index_fill(self, dim: int, index: Self, value: float) -> Self: ...
    @overload
    def index_fill(
        self, *, dim: int = ..., index: Self = ..., value: float = ..., axis: int = ...
    ) -> Self: ...
    @overload
    def index_select(self, dim: int, index: Self) -> Self: ...
    @overload
    def index_select(self, *, dim: int = ..., index: Self = ..., axis: int = ...) -> Self: ...
    @overload
    def irfft(self, n: int | None = ..., dim: int = ..., norm: Norm = ...) -> Self: ...
    @overload
    def irfft(self, n: int | None = ..., *, dim: int = ..., norm: Norm = ..., axis: int = ...) -> Self: ...
    @overload
    def irfft2(self, s: Sequence[int] | None = ..., dim: Sequence[int] = ..., norm: Norm = ...) -> Self: ...
    @overload
    def irfft2(
        self,
        s: Sequence[int] | None = ...,
        *,
        dim: Sequence[int] = ...,
        norm: Norm = ...,
        axis: Sequence[int] = ...,
    ) -> Self: ...
    @overload
    def irfftn(
        self, s: Sequence[int] | None = ..., dim: int | Sequence[int] | None = ..., norm: Norm = ...
    ) -> Self: ...
    @overload
    def irfftn(
        self,
        s: Sequence[int] | None = ...,
        *,
        dim: int | Sequence[int] | None = ...,
        norm: Norm = ...,
        axis: int | Sequence[int] | None = ...,
    ) -> Self: ...
    @overload
    def is_class(self, num_classes: Any, axis: int) -> Self: ...
    @overload
    def is_class(
        self, num_classes: Any, *, axis: int = ..., dim: int = ..., dims: int = ..., axes: int = ...
    ) -> Self: ...
    @overload
    def kl_div(self, Y: Self, reduction: str = ..., log_target: bool = ...) -> Self: ...
    @overload
    def kl_div(
        self, *, Y: Self = ..., reduction: str = ..., log_target: bool = ..., target: Self = ...
    ) -> Self: ...
    @overload
    def kthvalue(self, k: int, dim: int = ..., keepdim: bool = ...) -> tuple[Self, Self]: ...
    @overload
    def kthvalue(
        self, k: int, *, dim: int = ..., keepdim: bool = ..., axis: int = ..., keepdims: bool = ...
    ) -> tuple[Self, Self]: ...
    @overload
    def l1_loss(self, Y: Self, reduction: str = ...) -> Self: ...
    @overload
    def l1_loss(self, *, Y: Self = ..., reduction: str = ..., target: Self = ...) -> Self: ...
    @overload
    def layernorm(self, axis: int | tuple[int, ...] = ..., eps: float = ...) -> Self: ...
    @overload
    def layernorm(
        self,
        *,
        axis: int | tuple[int, ...] = ...,
        eps: float = ...,
        dim: int | tuple[int, ...] = ...,
        dims: int | tuple[int, ...] = ...,
        axes: int | tuple[int, ...] = ...,
    ) -> Self: ...
    @overload
    def lcm(self, x: TensorLike) -> Self: ...
    @overload
    def lcm(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def le(self, x: TensorLike) -> Self: ...
    @overload
    def le(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def leaky_relu(self, neg_slope: float = ...) -> Self: ...
    @overload
    def leaky_relu(self, *, neg_slope: float = ..., negative_slope: float = ...) -> Self: ...
    @overload
    def less(self, x: TensorLike) -> Self: ...
    @overload
    def less(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def less_equal(self, x: TensorLike) -> Self: ...
    @overload
    def less_equal(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def log_softmax(self, axis: Axes = ..., dtype: DTypeLike | None = ...) -> Self: ...
    @overload
    def log_softmax(
        self,
        *,
        axis: Axes = ...,
        dtype: DTypeLike | None = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
    ) -> Self: ...
    @overload
    def logaddexp2(self, x: TensorLike) -> Self: ...
    @overload
    def logaddexp2(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def logcumsumexp(self, axis: int = ...) -> Self: ...
    @overload
    def logcumsumexp(self, *, axis: int = ..., dim: int = ..., dims: int = ..., axes: int = ...) -> Self: ...
    @overload
    def logical_and(self, x: TensorLike) -> Self: ...
    @overload
    def logical_and(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def logical_or(self, x: TensorLike) -> Self: ...
    @overload
    def logical_or(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def logical_xor(self, x: TensorLike) -> Self: ...
    @overload
    def logical_xor(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def logsumexp(self, axis: Axes = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def logsumexp(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def lshift(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def lshift(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def lt(self, x: TensorLike) -> Self: ...
    @overload
    def lt(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def margin_ranking_loss(
        self, other: Self, Y: Self, margin: float = ..., reduction: str = ...
    ) -> Self: ...
    @overload
    def margin_ranking_loss(
        self, other: Self, *, Y: Self = ..., margin: float = ..., reduction: str = ..., target: Self = ...
    ) -> Self: ...
    @overload
    def matmul(self, x: TensorLike, reverse: bool = ..., dtype: DTypeLike | None = ...) -> Self: ...
    @overload
    def matmul(
        self,
        *,
        x: TensorLike = ...,
        reverse: bool = ...,
        dtype: DTypeLike | None = ...,
        other: TensorLike = ...,
    ) -> Self: ...
    @overload
    def max(self, axis: Axes = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def max(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def max_unpool2d(
        self,
        indices: Self,
        kernel_size: int | Sequence[int] = ...,
        stride: Any = ...,
        dilation: Any = ...,
        padding: int | Sequence[int] = ...,
        output_size: Sequence[int] | None = ...,
    ) -> Self: ...
    @overload
    def max_unpool2d(
        self,
        indices: Self,
        kernel_size: int | Sequence[int] = ...,
        stride: Any = ...,
        dilation: Any = ...,
        *,
        padding: int | Sequence[int] = ...,
        output_size: Sequence[int] | None = ...,
        pad: int | Sequence[int] = ...,
    ) -> Self: ...
    @overload
    def maximum(self, x: TensorLike) -> Self: ...
    @overload
    def maximum(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def mean(self, axis: Axes = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def mean(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def median(self, axis: int | None = ..., keepdim: bool = ...) -> Self | tuple[Self, Self]: ...
    @overload
    def median(
        self,
        *,
        axis: int | None = ...,
        keepdim: bool = ...,
        dim: int | None = ...,
        dims: int | None = ...,
        axes: int | None = ...,
        keepdims: bool = ...,
    ) -> Self | tuple[Self, Self]: ...
    @overload
    def min(self, axis: Axes = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def min(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def minimum(self, x: TensorLike) -> Self: ...
    @overload
    def minimum(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def mm(self, x: TensorLike, reverse: bool = ..., dtype: DTypeLike | None = ...) -> Self: ...
    @overload
    def mm(
        self,
        *,
        x: TensorLike = ...,
        reverse: bool = ...,
        dtype: DTypeLike | None = ...,
        other: TensorLike = ...,
    ) -> Self: ...
    @overload
    def mod(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def mod(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def mode(self, dim: int = ..., keepdim: bool = ...) -> tuple[Self, Self]: ...
    @overload
    def mode(
        self, *, dim: int = ..., keepdim: bool = ..., axis: int = ..., keepdims: bool = ...
    ) -> tuple[Self, Self]: ...
    @overload
    def mse_loss(self, Y: Self, reduction: str = ...) -> Self: ...
    @overload
    def mse_loss(self, *, Y: Self = ..., reduction: str = ..., target: Self = ...) -> Self: ...
    @overload
    def mul(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def mul(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def multi_margin_loss(
        self, Y: Self, p: int = ..., margin: float = ..., weight: Self | None = ..., reduction: str = ...
    ) -> Self: ...
    @overload
    def multi_margin_loss(
        self,
        *,
        Y: Self = ...,
        p: int = ...,
        margin: float = ...,
        weight: Self | None = ...,
        reduction: str = ...,
        target: Self = ...,
    ) -> Self: ...
    @overload
    def multilabel_margin_loss(self, Y: Self, reduction: str = ...) -> Self: ...
    @overload
    def multilabel_margin_loss(self, *, Y: Self = ..., reduction: str = ..., target: Self = ...) -> Self: ...
    @overload
    def multilabel_soft_margin_loss(
        self, Y: Self, weight: Self | None = ..., reduction: str = ...
    ) -> Self: ...
    @overload
    def multilabel_soft_margin_loss(
        self, *, Y: Self = ..., weight: Self | None = ..., reduction: str = ..., target: Self = ...
    ) -> Self: ...
    @overload
    def multiply(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def multiply(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def mv(self, x: TensorLike, reverse: bool = ..., dtype: DTypeLike | None = ...) -> Self: ...
    @overload
    def mv(
        self,
        *,
        x: TensorLike = ...,
        reverse: bool = ...,
        dtype: DTypeLike | None = ...,
        other: TensorLike = ...,
    ) -> Self: ...
    @overload
    def nanmean(self, axis: Axes = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def nanmean(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def nansum(self, axis: Axes = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def nansum(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def narrow(self, dim: int, start: int, length: int) -> Self: ...
    @overload
    def narrow(self, *, dim: int = ..., start: int = ..., length: int = ..., axis: int = ...) -> Self: ...
    @overload
    def ne(self, x: TensorLike) -> Self: ...
    @overload
    def ne(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def new_full(self, shape: tuple[int, ...], fill_value: Any) -> Self: ...
    @overload
    def new_full(
        self, *, shape: tuple[int, ...] = ..., fill_value: Any = ..., size: tuple[int, ...] = ...
    ) -> Self: ...
    @overload
    def new_ones(self, *shape: Any) -> Self: ...
    @overload
    def new_ones(self, *, size: Any = ...) -> Self: ...
    @overload
    def new_zeros(self, *shape: Any) -> Self: ...
    @overload
    def new_zeros(self, *, size: Any = ...) -> Self: ...
    @overload
    def nll_loss(
        self, Y: Self, weight: Self | None = ..., ignore_index: int | None = ..., reduction: str = ...
    ) -> Self: ...
    @overload
    def nll_loss(
        self,
        *,
        Y: Self = ...,
        weight: Self | None = ...,
        ignore_index: int | None = ...,
        reduction: str = ...,
        target: Self = ...,
    ) -> Self: ...
    @overload
    def norm(self, p: float = ..., axis: Axes = ..., keepdim: bool = ...) -> Self: ...
    @overload
    def norm(
        self,
        p: float = ...,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def normalize(self, p: float = ..., dim: int = ..., eps: float = ...) -> Self: ...
    @overload
    def normalize(self, p: float = ..., *, dim: int = ..., eps: float = ..., axis: int = ...) -> Self: ...
    @overload
    def not_equal(self, x: TensorLike) -> Self: ...
    @overload
    def not_equal(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def pad(self, padding: Sequence[Any], mode: str = ..., value: Any = ...) -> Self: ...
    @overload
    def pad(
        self, *, padding: Sequence[Any] = ..., mode: str = ..., value: Any = ..., pad: Sequence[Any] = ...
    ) -> Self: ...
    @overload
    def pad_to(self, shape: Any, *args: Any, value: Any = ...) -> Self: ...
    @overload
    def pad_to(self, *, shape: Any = ..., value: Any = ..., size: Any = ...) -> Self: ...
    @overload
    def pairwise_distance(
        self, other: Self, p: float = ..., eps: float = ..., keepdim: bool = ...
    ) -> Self: ...
    @overload
    def pairwise_distance(
        self, other: Self, p: float = ..., eps: float = ..., *, keepdim: bool = ..., keepdims: bool = ...
    ) -> Self: ...
    @overload
    def permute(self, order: Any, *args: Any) -> Self: ...
    @overload
    def permute(
        self, *, order: Any = ..., dim: Any = ..., axis: Any = ..., dims: Any = ..., axes: Any = ...
    ) -> Self: ...
    @overload
    def poisson_nll_loss(
        self, Y: Self, log_input: bool = ..., full: bool = ..., eps: float = ..., reduction: str = ...
    ) -> Self: ...
    @overload
    def poisson_nll_loss(
        self,
        *,
        Y: Self = ...,
        log_input: bool = ...,
        full: bool = ...,
        eps: float = ...,
        reduction: str = ...,
        target: Self = ...,
    ) -> Self: ...
    @overload
    def pow(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def pow(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def prod(self, axis: Axes = ..., keepdim: bool = ..., dtype: DTypeLike | None = ...) -> Self: ...
    @overload
    def prod(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dtype: DTypeLike | None = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def quantile(
        self,
        q: float | Sequence[float],
        axis: int | None = ...,
        keepdim: bool = ...,
        interpolation: str = ...,
    ) -> Self: ...
    @overload
    def quantile(
        self,
        q: float | Sequence[float],
        *,
        axis: int | None = ...,
        keepdim: bool = ...,
        interpolation: str = ...,
        dim: int | None = ...,
        dims: int | None = ...,
        axes: int | None = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    @classmethod
    def rand(
        cls,
        *shape: Any,
        device: str | None = ...,
        dtype: DTypeLike | None = ...,
        requires_grad: bool | None = ...,
        contiguous: bool = ...,
    ) -> Self: ...
    @overload
    @classmethod
    def rand(
        cls,
        *,
        device: str | None = ...,
        dtype: DTypeLike | None = ...,
        requires_grad: bool | None = ...,
        contiguous: bool = ...,
        size: Any = ...,
    ) -> Self: ...
    @overload
    def remainder(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def remainder(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def repeat_interleave(self, repeats: int, dim: int | None = ...) -> Self: ...
    @overload
    def repeat_interleave(self, repeats: int, *, dim: int | None = ..., axis: int | None = ...) -> Self: ...
    @overload
    def replace(self, x: Self) -> Self: ...
    @overload
    def replace(self, *, x: Self = ..., other: Self = ...) -> Self: ...
    @overload
    def reshape(self, shape: Any, *args: Any) -> Self: ...
    @overload
    def reshape(self, *, shape: Any = ..., size: Any = ...) -> Self: ...
    @overload
    def rfft(self, n: int | None = ..., dim: int = ..., norm: Norm = ...) -> Self: ...
    @overload
    def rfft(self, n: int | None = ..., *, dim: int = ..., norm: Norm = ..., axis: int = ...) -> Self: ...
    @overload
    def rfft2(self, s: Sequence[int] | None = ..., dim: Sequence[int] = ..., norm: Norm = ...) -> Self: ...
    @overload
    def rfft2(
        self,
        s: Sequence[int] | None = ...,
        *,
        dim: Sequence[int] = ...,
        norm: Norm = ...,
        axis: Sequence[int] = ...,
    ) -> Self: ...
    @overload
    def rfftn(
        self, s: Sequence[int] | None = ..., dim: int | Sequence[int] | None = ..., norm: Norm = ...
    ) -> Self: ...
    @overload
    def rfftn(
        self,
        s: Sequence[int] | None = ...,
        *,
        dim: int | Sequence[int] | None = ...,
        norm: Norm = ...,
        axis: int | Sequence[int] | None = ...,
    ) -> Self: ...
    @overload
    def roll(self, shifts: Any, dims: int | tuple[int, ...] | None = ...) -> Self: ...
    @overload
    def roll(
        self,
        shifts: Any,
        *,
        dims: int | tuple[int, ...] | None = ...,
        dim: int | tuple[int, ...] | None = ...,
        axis: int | tuple[int, ...] | None = ...,
        axes: int | tuple[int, ...] | None = ...,
    ) -> Self: ...
    @overload
    def rot90(self, k: int = ..., dims: Sequence[int] = ...) -> Self: ...
    @overload
    def rot90(
        self,
        k: int = ...,
        *,
        dims: Sequence[int] = ...,
        dim: Sequence[int] = ...,
        axis: Sequence[int] = ...,
        axes: Sequence[int] = ...,
    ) -> Self: ...
    @overload
    def rshift(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def rshift(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def scatter(self, dim: int, index: Self, src: TensorLike, reduce: str | None = ...) -> Self: ...
    @overload
    def scatter(
        self,
        *,
        dim: int = ...,
        index: Self = ...,
        src: TensorLike = ...,
        reduce: str | None = ...,
        axis: int = ...,
    ) -> Self: ...
    @overload
    def scatter_add(self, dim: int, index: Self, src: Self) -> Self: ...
    @overload
    def scatter_add(self, *, dim: int = ..., index: Self = ..., src: Self = ..., axis: int = ...) -> Self: ...
    @overload
    def scatter_reduce(
        self, dim: int, index: Self, src: Self, reduce: str, include_self: bool = ...
    ) -> Self: ...
    @overload
    def scatter_reduce(
        self,
        *,
        dim: int = ...,
        index: Self = ...,
        src: Self = ...,
        reduce: str = ...,
        include_self: bool = ...,
        axis: int = ...,
    ) -> Self: ...
    @overload
    def select(self, dim: int, index: int) -> Self: ...
    @overload
    def select(self, *, dim: int = ..., index: int = ..., axis: int = ...) -> Self: ...
    @overload
    def shard(self, devices: Sequence[str], axis: int | None = ...) -> Self: ...
    @overload
    def shard(
        self,
        devices: Sequence[str],
        *,
        axis: int | None = ...,
        dim: int | None = ...,
        dims: int | None = ...,
        axes: int | None = ...,
    ) -> Self: ...
    @overload
    def shard_(self, devices: Sequence[str], axis: int | None = ...) -> Self: ...
    @overload
    def shard_(
        self,
        devices: Sequence[str],
        *,
        axis: int | None = ...,
        dim: int | None = ...,
        dims: int | None = ...,
        axes: int | None = ...,
    ) -> Self: ...
    @overload
    def shrink_to(self, shape: Any, *args: Any) -> Self: ...
    @overload
    def shrink_to(self, *, shape: Any = ..., size: Any = ...) -> Self: ...
    @overload
    def size(self, dim: int | None = ...) -> Any: ...
    @overload
    def size(self, *, dim: int | None = ..., axis: int | None = ...) -> Any: ...
    @overload
    def smooth_l1_loss(self, Y: Self, reduction: str = ..., beta: float = ...) -> Self: ...
    @overload
    def smooth_l1_loss(
        self, *, Y: Self = ..., reduction: str = ..., beta: float = ..., target: Self = ...
    ) -> Self: ...
    @overload
    def soft_margin_loss(self, Y: Self, reduction: str = ...) -> Self: ...
    @overload
    def soft_margin_loss(self, *, Y: Self = ..., reduction: str = ..., target: Self = ...) -> Self: ...
    @overload
    def softmax(self, axis: Axes = ..., dtype: DTypeLike | None = ...) -> Self: ...
    @overload
    def softmax(
        self,
        *,
        axis: Axes = ...,
        dtype: DTypeLike | None = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
    ) -> Self: ...
    @overload
    def softmin(self, axis: Axes = ..., dtype: DTypeLike | None = ...) -> Self: ...
    @overload
    def softmin(
        self,
        *,
        axis: Axes = ...,
        dtype: DTypeLike | None = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
    ) -> Self: ...
    @overload
    def sort(self, dim: int = ..., descending: bool = ...) -> tuple[Self, Self]: ...
    @overload
    def sort(self, *, dim: int = ..., descending: bool = ..., axis: int = ...) -> tuple[Self, Self]: ...
    @overload
    def sparse_categorical_crossentropy(
        self, Y: Self, ignore_index: int = ..., label_smoothing: float = ..., reduction: str = ...
    ) -> Self: ...
    @overload
    def sparse_categorical_crossentropy(
        self,
        *,
        Y: Self = ...,
        ignore_index: int = ...,
        label_smoothing: float = ...,
        reduction: str = ...,
        target: Self = ...,
    ) -> Self: ...
    @overload
    def split(self, sizes: Any, dim: int = ...) -> tuple[Self, ...]: ...
    @overload
    def split(
        self,
        *,
        sizes: Any = ...,
        dim: int = ...,
        axis: int = ...,
        size: Any = ...,
        split_size: Any = ...,
        split_size_or_sections: Any = ...,
    ) -> tuple[Self, ...]: ...
    @overload
    def squeeze(self, dim: int | None = ...) -> Self: ...
    @overload
    def squeeze(self, *, dim: int | None = ..., axis: int | None = ...) -> Self: ...
    @overload
    def stack(self, *args: Self, dim: int = ...) -> Self: ...
    @overload
    def stack(self, *, dim: int = ..., axis: int = ...) -> Self: ...
    @overload
    def std(self, axis: Axes = ..., keepdim: bool = ..., correction: int = ...) -> Self: ...
    @overload
    def std(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        correction: int = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
        unbiased: int = ...,
        ddof: int = ...,
    ) -> Self: ...
    @overload
    def std_mean(self, axis: Axes = ..., keepdim: bool = ..., correction: int = ...) -> tuple[Self, Self]: ...
    @overload
    def std_mean(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        correction: int = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
        unbiased: int = ...,
        ddof: int = ...,
    ) -> tuple[Self, Self]: ...
    @overload
    def sub(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def sub(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def subtract(self, x: TensorLike, reverse: bool = ...) -> Self: ...
    @overload
    def subtract(self, *, x: TensorLike = ..., reverse: bool = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def sum(self, axis: Axes = ..., keepdim: bool = ..., dtype: DTypeLike | None = ...) -> Self: ...
    @overload
    def sum(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        dtype: DTypeLike | None = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
    ) -> Self: ...
    @overload
    def take_along_dim(self, indices: Self, dim: int | None = ...) -> Self: ...
    @overload
    def take_along_dim(self, indices: Self, *, dim: int | None = ..., axis: int | None = ...) -> Self: ...
    @overload
    def tile(self, dims: Any, *args: int) -> Self: ...
    @overload
    def tile(self, *, dims: Any = ..., dim: Any = ..., axis: Any = ..., axes: Any = ...) -> Self: ...
    @overload
    def topk(self, k: int, dim: int = ..., largest: bool = ..., sorted_: bool = ...) -> tuple[Self, Self]: ...
    @overload
    def topk(
        self,
        k: int,
        *,
        dim: int = ...,
        largest: bool = ...,
        sorted_: bool = ...,
        axis: int = ...,
        sorted: bool = ...,
    ) -> tuple[Self, Self]: ...
    @overload
    def trace(self, offset: int = ...) -> Self: ...
    @overload
    def trace(self, *, offset: int = ..., k: int = ...) -> Self: ...
    @overload
    def tril(self, diagonal: int = ...) -> Self: ...
    @overload
    def tril(self, *, diagonal: int = ..., k: int = ...) -> Self: ...
    @overload
    def triu(self, diagonal: int = ...) -> Self: ...
    @overload
    def triu(self, *, diagonal: int = ..., k: int = ...) -> Self: ...
    @overload
    def true_divide(
        self, x: TensorLike, reverse: bool = ..., rounding_mode: Literal["trunc", "floor"] | None = ...
    ) -> Self: ...
    @overload
    def true_divide(
        self,
        *,
        x: TensorLike = ...,
        reverse: bool = ...,
        rounding_mode: Literal["trunc", "floor"] | None = ...,
        other: TensorLike = ...,
    ) -> Self: ...
    @overload
    def ufix(self, x: TensorLike) -> Self: ...
    @overload
    def ufix(self, *, x: TensorLike = ..., other: TensorLike = ...) -> Self: ...
    @overload
    def unbind(self, dim: int = ...) -> tuple[Self, ...]: ...
    @overload
    def unbind(self, *, dim: int = ..., axis: int = ...) -> tuple[Self, ...]: ...
    @overload
    def unflatten(self, dim: int, sizes: tuple[int, ...]) -> Self: ...
    @overload
    def unflatten(
        self,
        *,
        dim: int = ...,
        sizes: tuple[int, ...] = ...,
        axis: int = ...,
        size: tuple[int, ...] = ...,
        split_size: tuple[int, ...] = ...,
        split_size_or_sections: tuple[int, ...] = ...,
    ) -> Self: ...
    @overload
    def unfold(self, dim: int, size: int, step: int) -> Self: ...
    @overload
    def unfold(self, *, dim: int = ..., size: int = ..., step: int = ..., axis: int = ...) -> Self: ...
    @overload
    def unsqueeze(self, dim: int) -> Self: ...
    @overload
    def unsqueeze(self, *, dim: int = ..., axis: int = ...) -> Self: ...
    @overload
    def var(self, axis: Axes = ..., keepdim: bool = ..., correction: int = ...) -> Self: ...
    @overload
    def var(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        correction: int = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
        unbiased: int = ...,
        ddof: int = ...,
    ) -> Self: ...
    @overload
    def var_mean(self, axis: Axes = ..., keepdim: bool = ..., correction: int = ...) -> tuple[Self, Self]: ...
    @overload
    def var_mean(
        self,
        *,
        axis: Axes = ...,
        keepdim: bool = ...,
        correction: int = ...,
        dim: Axes = ...,
        dims: Axes = ...,
        axes: Axes = ...,
        keepdims: bool = ...,
        unbiased: int = ...,
        ddof: int = ...,
    ) -> tuple[Self, Self]: ...
    @overload
    def view(self, shape: Any, *args: Any) -> Self: ...
    @overload
    def view(self, *, shape: Any = ..., size: Any = ...) -> Self: ...
    @overload
    def where(self, x: TensorLike, y: TensorLike) -> Self: ...
    @overload
    def where(self, *, x: TensorLike = ..., y: TensorLike = ..., other: TensorLike = ...) -> Self: ...
