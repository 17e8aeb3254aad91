"""Random tensors. The generator is counter-based, so draws are lazy and have the same bits on every device.

Two draws of one shape share a kernel. `generator.py` has the counters.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

import math
from typing import Any, Self

from polygrad.dtype import DType, dtypes, to_dtype
from polygrad.engine.devices import Device, placement_of
from polygrad.errors import ArgumentError, DTypeError, ShapeError
from polygrad.helpers import prod
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.core.checks import at_line, checking, require
from polygrad.tensor.core.generator import generator
from polygrad.tensor.core.sizes import args_of, check_shape, fixed_size, python_number
from polygrad.tensor.cumulative import CumulativeMixin
from polygrad.uop.args import Sharding
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import sint_max


class RandomMixin(CumulativeMixin):
    """Random tensors. Keywords everywhere: device, dtype, requires_grad."""

    __slots__ = ()

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        """Restart all random numbers: the same seed gives the same bits, on every device.

        >>> Tensor.manual_seed(1)
        >>> a = Tensor.rand(3)
        >>> Tensor.manual_seed(1)
        >>> (Tensor.rand(3) == a).tolist()
        [True, True, True]
        """
        if not hasattr(seed, "__index__"):
            raise ArgumentError(f"manual_seed: expected an int, got {seed!r}")
        generator.reset(seed.__index__())

    @classmethod
    def _random_bits(cls, shape: tuple[Any, ...], device: str | None) -> tuple[UOp, Any]:
        """uint64 random bits, a node of `shape`. Several devices use the bits of the first."""
        home = placement_of(device) if device is not None else Device.DEFAULT
        count = prod(shape)
        flat = (count,)
        if isinstance(home, tuple):
            draw = generator.draw(home[0], sint_max(count))
            key, base, offset = [x.copy_to(Sharding(home, None)) for x in draw]
        else:
            key, base, offset = generator.draw(home, sint_max(count))
        start = (base + offset).expand(flat)
        counter = UOp(Ops.ARANGE, dtypes.uint64, (), count) + start
        return UOp(Ops.THREEFRY, dtypes.uint64, (counter, key.expand(flat))).reshape(shape), home

    @classmethod
    def rand(
        cls,
        *shape: Any,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
        contiguous: bool = True,
    ) -> Self:
        """Uniform in [0, 1): every multiple of 2^-24 (float32) is equally likely.

        Raises DTypeError, ShapeError.

        >>> Tensor.rand(2, 3).shape
        (2, 3)
        """
        to = dtypes.default_float if dtype is None else to_dtype(dtype)
        if not to.is_float:
            raise DTypeError(f"rand: expected a float dtype, got {to}: use randint()")
        bits, home = cls._random_bits(_shape_of(shape, "rand"), device)
        out = _unit(bits, to)
        return cls._of(out.contiguous() if contiguous else out, home, requires_grad)

    @classmethod
    def randn(
        cls, *shape: Any, dtype: DTypeLike | None = None, requires_grad: bool | None = None, **kwargs: Any
    ) -> Self:
        """Normal with mean 0 and variance 1 (Box and Muller, 1958).

        A number of up to 32 bits takes one draw of 64 bits, a float64 two.

        >>> Tensor.randn(2, 3).shape
        (2, 3)
        """
        to = dtypes.default_float if dtype is None else to_dtype(dtype)
        if not to.is_float:
            raise DTypeError(f"randn: expected a float dtype, got {to}")
        sizes = _shape_of(shape, "randn")
        if to is dtypes.float64:
            u = cls.rand(2, *sizes, dtype=to, contiguous=False, device=kwargs.get("device"))
            home = u._device
            first, second = (u.shrink([(i, i + 1), *[None] * len(sizes)]).reshape(sizes) for i in (0, 1))
            direction = (first * (2 * math.pi)).cos()
        else:
            bits, home = cls._random_bits(sizes, kwargs.get("device"))
            direction = cls._of(_sine(_signed_unit(bits)), home)
            second = cls._of(_unit(bits, dtypes.float32), home)
        out = direction * ((1.0 - second).log() * -2.0).sqrt()
        return cls._of(out.uop.cast(to).contiguous(), home, requires_grad)

    @classmethod
    def randint(
        cls, *shape: Any, low: int = 0, high: int = 10, dtype: DTypeLike = dtypes.int32, **kwargs: Any
    ) -> Self:
        """Integers uniform in [low, high). The bias of a range of n is below n / 2^32 (n / 2^64 above 2^31).

        Raises ArgumentError for an empty range or one that does not fit, DTypeError.

        >>> Tensor.randint(4, low=7, high=8).tolist()
        [7, 7, 7, 7]
        """
        to = to_dtype(dtype)
        if not to.is_int:
            raise DTypeError(f"randint: expected an integer dtype, got {to}")
        low, high = python_number(low), python_number(high)
        if not (isinstance(low, int) and isinstance(high, int)) or low >= high:
            raise ArgumentError(f"randint: expected integers low < high, got {low!r} and {high!r}")
        if low < to.min or high - 1 > to.max:
            raise ArgumentError(
                f"randint: expected a range within {to.min}..{to.max} ({to}), got {low}..{high - 1}"
            )
        bits, home = cls._random_bits(_shape_of(shape, "randint"), kwargs.get("device"))
        n = high - low
        if n <= 1 << 31:  # the high word of a 32 by 32 bit product
            offsets = (bits & 0xFFFFFFFF) * n >> 32
        elif n < 1 << 64:
            offsets = bits % n
        else:
            offsets = bits
        out = offsets.cast(to)
        return cls._of((out if low == 0 else out + low).contiguous(), home, kwargs.get("requires_grad"))

    @classmethod
    def normal(
        cls, *shape: Any, mean: float = 0.0, std: float = 1.0, requires_grad: bool | None = None, **kw: Any
    ) -> Self:
        """Normal with `mean` and standard deviation `std`. Raises ArgumentError for a negative one.

        >>> Tensor.normal(2, 3, mean=1.0, std=2.0).shape
        (2, 3)
        """
        if std < 0:
            raise ArgumentError(f"normal: expected a standard deviation of at least 0, got {std}")
        out = cls.randn(*shape, **kw) * std + mean
        return cls._of(out.uop, out._device, requires_grad)

    @classmethod
    def uniform(
        cls,
        *shape: Any,
        low: float = 0.0,
        high: float = 1.0,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
        **kwargs: Any,
    ) -> Self:
        """Uniform in [low, high); of an integer dtype, rounded towards 0.

        Raises ArgumentError where low > high.

        >>> Tensor.uniform(2, 3, low=-1.0, high=1.0).shape
        (2, 3)
        """
        if low > high:
            raise ArgumentError(f"uniform: expected low <= high, got {low} and {high}")
        to = dtypes.default_float if dtype is None else to_dtype(dtype)
        wide = to if to.is_float else dtypes.default_float
        out = cls.rand(*shape, dtype=wide, **kwargs) * (high - low) + low
        return cls._of(out.uop.cast(to), out._device, requires_grad)

    @classmethod
    def scaled_uniform(cls, *shape: Any, **kwargs: Any) -> Self:
        """Uniform in ±1 / sqrt(number of elements).

        >>> Tensor.scaled_uniform(2, 3).shape
        (2, 3)
        """
        bound = 1.0 / math.sqrt(max(prod(_shape_of(shape, "scaled_uniform")), 1))
        return cls.uniform(*shape, low=-bound, high=bound, **kwargs)

    @classmethod
    def glorot_uniform(cls, *shape: Any, **kwargs: Any) -> Self:
        """Uniform in ±sqrt(6 / (fan in + fan out)) (Glorot and Bengio, 2010).

        >>> Tensor.glorot_uniform(2, 3).shape
        (2, 3)
        """
        sizes = _shape_of(shape, "glorot_uniform")
        bound = math.sqrt(6.0 / (sizes[0] + prod(sizes[1:])))
        return cls.uniform(*shape, low=-bound, high=bound, **kwargs)

    @classmethod
    def kaiming_uniform(cls, *shape: Any, a: float = 0.01, **kwargs: Any) -> Self:
        """Uniform in ±sqrt(6 / (1 + a²) / fan in) (He et al., 2015).

        >>> Tensor.kaiming_uniform(2, 3).shape
        (2, 3)
        """
        bound = (
            math.sqrt(3.0)
            * math.sqrt(2.0 / (1 + a**2))
            / math.sqrt(prod(_shape_of(shape, "kaiming_uniform")[1:]))
        )
        return cls.uniform(*shape, low=-bound, high=bound, **kwargs)

    @classmethod
    def kaiming_normal(cls, *shape: Any, a: float = 0.01, **kwargs: Any) -> Self:
        """Normal with variance 2 / (1 + a²) / fan in (He et al., 2015).

        >>> Tensor.kaiming_normal(2, 3).shape
        (2, 3)
        """
        std = math.sqrt(2.0 / (1 + a**2)) / math.sqrt(prod(_shape_of(shape, "kaiming_normal")[1:]))
        return cls.normal(*shape, mean=0.0, std=std, **kwargs)

    def rand_like(self, **kwargs: Any) -> Self:
        """`rand` in this Tensor's shape, by default with its dtype and on its device.

        >>> Tensor.zeros(2, 3).rand_like().shape
        (2, 3)
        """
        given = {name: value for name, value in kwargs.items() if value is not None}
        return self.rand(*self.shape, **{"device": self._device, "dtype": self.dtype, **given})

    def randn_like(self, dtype: DTypeLike | None = None, **kwargs: Any) -> Self:
        """`randn` in this Tensor's shape, by default with its dtype and on its device.

        >>> Tensor.zeros(2, 3).randn_like().shape
        (2, 3)
        """
        return self.randn(*self.shape, **{"device": self._device, "dtype": dtype or self.dtype, **kwargs})

    @classmethod
    def randperm(
        cls, n: int, device: str | None = None, dtype: DTypeLike = dtypes.int32, **kwargs: Any
    ) -> Self:
        """A random order of 0..n-1: the rank of each of n draws. Work grows with n². 1-D.

        Raises ArgumentError.

        >>> order, places = Tensor.randperm(5).sort()
        >>> order.tolist()
        [0, 1, 2, 3, 4]
        """
        n = python_number(n)
        if isinstance(n, int) and n < 0:
            raise ArgumentError(f"randperm: expected n of at least 0, got {n}")
        bits, home = cls._random_bits((n,), device)
        index = cls._of(UOp(Ops.ARANGE, dtypes.int32, (), n))
        draws = cls._of(bits.contiguous(), home)
        x, y = draws.unsqueeze(1), draws.unsqueeze(0)
        precedes = (y < x) | (y.eq(x) & (index.unsqueeze(0) < index.unsqueeze(1)))
        ranks = precedes.sum(1, dtype=dtypes.int32)
        return cls._of(ranks.uop.cast(to_dtype(dtype)), home, kwargs.get("requires_grad"))

    def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Self:
        """Positions (int32) drawn with these (unnormalised) probabilities, along the last of 1 or 2 axes.

        Without `replacement` they are different, and there must be as many probabilities above 0 (an
        ArgumentError with `CHECK=1`; else those of 0 come last). Raises ShapeError, ArgumentError.

        >>> Tensor([0.0, 1.0]).multinomial().tolist()
        [1]
        """
        if self.ndim not in (1, 2):
            raise ShapeError(f"multinomial: expected 1 or 2 axes, got shape {self.shape}")
        count = fixed_size(self.shape[-1], "multinomial")
        if num_samples < 1 or (not replacement and num_samples > count):
            limit = "" if replacement else f" and at most {count}, or replacement=True"
            raise ArgumentError(f"multinomial: expected num_samples of at least 1{limit}, got {num_samples}")
        weights = self.unsqueeze(0) if self.ndim == 1 else self
        if not replacement and num_samples > 1:
            positions = weights._detached()._race(num_samples)
            return positions.squeeze(0) if self.ndim == 1 else positions
        ends = weights.float().cumsum(1)
        ends = ends / ends.shrink([None, (ends.shape[1] - 1, ends.shape[1])])
        draws = self.rand(num_samples, ends.shape[0], 1, device=self._device)
        positions = (draws < ends.unsqueeze(0)).logical_not().sum(2).permute(1, 0)
        return (positions.squeeze(0) if self.ndim == 1 else positions)._with_int()

    def _race(self, num_samples: int) -> Self:
        """Positions along axis 1 in the order in which exponential clocks of these rates ring: Efraimidis and
        Spirakis, "Weighted random sampling with a reservoir" (2006)."""
        if checking():
            line, shape = at_line(), self.shape

            def explain(row: int, positive_count: int) -> ArgumentError:
                location = f" in row {row}" if shape[0] != 1 else ""
                return ArgumentError(
                    f"multinomial: expected {num_samples} probabilities above 0{location}, got "
                    f"{positive_count}{line}"
                )

            positive_counts = (self > 0).sum(1)
            require(positive_counts < num_samples, positive_counts, explain)
        uniform = type(self).rand(*self.shape, device=self._device, dtype=dtypes.float32)
        times: Any = (self > 0).where((1.0 - uniform).log() / -self.float(), math.inf)
        first: Self = times.argsort(1).shrink([None, (0, num_samples)])
        return first

    def _with_int(self) -> Self:
        return self._with(self.uop.cast(dtypes.int32))

    def bernoulli(self) -> Self:
        """1 with these probabilities, else 0, in this dtype.

        >>> Tensor([0.0, 1.0]).bernoulli().tolist()
        [0.0, 1.0]
        """
        draws = type(self).rand(*self.shape, device=self.device, dtype=dtypes.float32)
        return (draws < self._detached()).cast_like(self)


def _shape_of(shape: tuple[Any, ...], subject: str) -> tuple[Any, ...]:
    return check_shape(args_of(shape[0], shape[1:]) if shape else (), subject)


def _unit(bits: UOp, dtype: DType) -> UOp:
    """uint64 random bits to [0, 1): as many high bits as the dtype's significand holds, scaled."""
    significand = dtype.significand
    if dtype is dtypes.float64:
        return (bits >> (64 - significand)).cast(dtype) * 2.0**-significand
    word = bits.cast(dtypes.uint32) >> (32 - significand)
    return word.cast(dtypes.int32).cast(dtype) * 2.0**-significand


def _signed_unit(bits: UOp) -> UOp:
    """The high word of uint64 random bits as a float32 in [-1, 1]."""
    word = (bits >> 32).cast(dtypes.uint32).bitcast(dtypes.int32)
    return word.cast(dtypes.float32) * 2.0**-31


# sin(pi/2 x)/x of x^2, |x| <= 1, interpolated at Chebyshev nodes; the constant term last
_QUARTER_SINE = (
    1.5167170360322396e-04, -4.674143838021253e-03, 7.968991832894333e-02, -6.459637595835207e-01,
    1.5707963200386006,
)  # fmt: skip


def _sine(x: UOp) -> UOp:
    """sin(pi/2 x) for |x| <= 1: half of a turn has all values of a cosine, each as often as a whole turn."""
    square = x * x
    first, second, *others = _QUARTER_SINE
    out = square * first + second
    for c in others:
        out = out * square + c
    return out * x
