"""`Tensor`: its mixins, and how a Tensor is made from Python data."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any, Self

from polygrad.dtype import DType, dtypes, to_dtype
from polygrad.engine.devices import Device, placement_of
from polygrad.engine.realize import buffer_from
from polygrad.engine.write_hazards import gradient_roots, live_roots
from polygrad.errors import DTypeError, ShapeError
from polygrad.gradient import device_of
from polygrad.helpers import prod
from polygrad.monitor import synchronize_methods
from polygrad.tensor.activations import ActivationsMixin
from polygrad.tensor.anomalies import follow_mode
from polygrad.tensor.autograd import AutogradMixin
from polygrad.tensor.casting import CastingMixin
from polygrad.tensor.convolution import ConvolutionMixin
from polygrad.tensor.copying import CopyingMixin
from polygrad.tensor.core.aliasing import cut_gradient, live_values, storage_of
from polygrad.tensor.core.argument_errors import PYTHON_ERRORS, retry_or_explain
from polygrad.tensor.core.base import DTypeLike, TensorLike, broadcast_constant, check_fits, declared_dtype
from polygrad.tensor.core.convert import (
    array_like,
    bfloat16_bits,
    bounds_of_data,
    check_count,
    dtype_of,
    flatten,
    from_memoryview,
    pack,
    unpack,
)
from polygrad.tensor.core.downloads import fetch
from polygrad.tensor.core.leaves import live_derived
from polygrad.tensor.core.modes import modes
from polygrad.tensor.core.registry import register
from polygrad.tensor.core.sizes import check_shape
from polygrad.tensor.core.sources import buffer_at, buffer_of_file, path_of
from polygrad.tensor.creation import CreationMixin, place_on_device
from polygrad.tensor.cumulative import CumulativeMixin
from polygrad.tensor.custom import CustomKernelMixin
from polygrad.tensor.decompositions import DecompositionsMixin
from polygrad.tensor.dlpack import DLPackMixin
from polygrad.tensor.elementwise import ElementwiseMixin
from polygrad.tensor.exponential import ExponentialMixin
from polygrad.tensor.fourier import FourierMixin
from polygrad.tensor.gather_scatter import GatherScatterMixin
from polygrad.tensor.hashing import HashingMixin
from polygrad.tensor.indexing import IndexingMixin
from polygrad.tensor.joining import JoiningMixin
from polygrad.tensor.linalg import LinalgMixin
from polygrad.tensor.linear_systems import LinearSystemsMixin
from polygrad.tensor.losses import LossesMixin
from polygrad.tensor.margin_losses import MarginLossesMixin
from polygrad.tensor.movement import MovementMixin
from polygrad.tensor.normalization import NormalizationMixin
from polygrad.tensor.padding import PaddingMixin
from polygrad.tensor.pooling import PoolingMixin
from polygrad.tensor.protocols import ProtocolsMixin
from polygrad.tensor.random import RandomMixin
from polygrad.tensor.reduce import ReduceMixin
from polygrad.tensor.resampling import ResamplingMixin
from polygrad.tensor.rounding import RoundingMixin
from polygrad.tensor.second_names import SecondNames
from polygrad.tensor.selection import SelectionMixin
from polygrad.tensor.sorting import SortingMixin
from polygrad.tensor.special import SpecialFunctionsMixin
from polygrad.tensor.spectra import SpectraMixin
from polygrad.tensor.storage import StorageMixin
from polygrad.tensor.trigonometric import TrigonometricMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

live_roots.append(live_values)
gradient_roots.append(live_derived)


class Tensor(
    SecondNames,  # arguments' second names, for type checkers
    DLPackMixin,  # from_dlpack
    ProtocolsMixin,  # bool, float, f"{t:.3f}", repr; numpy's functions
    StorageMixin,  # realize, numpy, item, to, assign
    AutogradMixin,  # backward, gradient, train
    MarginLossesMixin,  # triplet_margin_loss, multi_margin_loss
    NormalizationMixin,  # layernorm, batchnorm, dropout, scaled_dot_product_attention
    ResamplingMixin,  # interpolate, pixel_shuffle
    PoolingMixin,  # max_pool2d, avg_pool2d
    ConvolutionMixin,  # conv2d, conv_transpose2d
    SpectraMixin,  # fft2, fftn, stft
    FourierMixin,  # fft, rfft
    HashingMixin,  # hash, keccak, threefry
    DecompositionsMixin,  # qr, svd, eigh, cholesky
    LinearSystemsMixin,  # solve, inv, det
    LinalgMixin,  # dot, einsum, triu
    LossesMixin,  # cross_entropy, mse_loss
    SortingMixin,  # sort, argsort, topk, unique
    IndexingMixin,  # t[...], masked_select, nonzero
    GatherScatterMixin,  # gather, scatter, one_hot
    RandomMixin,  # rand, randn, randint, manual_seed
    CumulativeMixin,  # cumsum, cummax, diff
    ActivationsMixin,  # relu, gelu, softmax
    ReduceMixin,  # sum, mean, norm, argmax
    PaddingMixin,  # pad, pad_to
    JoiningMixin,  # cat, stack, split, repeat, roll
    MovementMixin,  # reshape, permute, shrink, flatten
    SpecialFunctionsMixin,  # erf, lgamma
    TrigonometricMixin,  # sin, atan2, tanh
    ExponentialMixin,  # pow, sqrt, exp, log
    RoundingMixin,  # round, floor, sign, abs
    SelectionMixin,  # where, maximum, clamp, isnan
    ElementwiseMixin,  # add, div, eq; operators
    CreationMixin,  # full, zeros, arange, linspace, eye
    CastingMixin,  # cast, bitcast, float
    CustomKernelMixin,  # custom_kernel
    CopyingMixin,  # copy, pickle
):
    """A lazy n-dimensional array with gradients: `Tensor(data, device=None, dtype=None, requires_grad=None)`.

    `data`: a bool, int or float; nested lists of them, or of Tensors; bytes (uint8, or the bytes of `dtype`);
    anything with the buffer protocol or `__array__` (numpy, array.array, memoryview); a JavaScript typed
    array; a Tensor; a node; None (an empty Tensor); a pathlib.Path or text `file:...`: the bytes of a file
    (uint8, or elements of `dtype`), mapped into memory where the device allows. Arrays keep their dtype,
    Python numbers become bool, int32 or float32.

    Nothing is computed until `realize`, `numpy`, `item`, `tolist` or `data` is called. Raises DTypeError,
    ShapeError, OverflowError_ (an int that does not fit the dtype), DeviceError.
    """

    __slots__ = ()

    def __init__(
        self,
        data: TensorLike | PurePath | None = None,
        device: str | tuple[str, ...] | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> None:
        to = None if dtype is None else to_dtype(dtype)
        home = None if device is None else placement_of(device)
        if isinstance(home, tuple):
            sharded = Tensor(data, None if isinstance(data, Tensor) else home[0], dtype).shard(home)
            self._become_new(sharded, requires_grad)
            return
        self._start(requires_grad)
        if isinstance(data, Tensor):
            self.uop, self._device = data.uop, data._device
            if to is not None:
                self.uop = self.uop.cast(to)
            if home is not None and home != data.device:
                self.uop, self._device = self.uop.copy_to(home), home
            if self.uop is data.uop:
                storage_of(data).add(self)
        elif isinstance(data, UOp):
            self._from_uop(data, home, to)
        elif isinstance(data, (bool, int, float)):
            kind = to or dtypes.from_py(data)
            if kind.is_int and isinstance(data, int):
                check_fits(data, kind, "data")
            self.uop, self._device = place_on_device(UOp.const(kind, data), home)
        elif (path := path_of(data)) is not None:
            self._from_file(path, home, to or dtypes.uint8)
        elif data is None:
            self.uop, self._device = place_on_device(
                broadcast_constant(to or dtypes.default_float, 0, (0,)), home
            )
        elif isinstance(data, (list, tuple)):
            self._from_list(data, home, to)
        else:
            self._from_array(data, home, to)
        register(self)
        if isinstance(data, UOp):
            storage_of(self)  # it may be a view of another Tensor's memory
        if requires_grad:
            self._mark_leaf()
        elif isinstance(data, Tensor):
            self._flow_to(data, requires_grad)

    def _start(self, requires_grad: bool | None) -> None:
        self._requires_grad, self._derived, self.grad = requires_grad, False, None
        self._role = self._storage = self._hooks = None

    def _flow_to(self, data: Tensor, requires_grad: bool | None) -> None:
        """Let the gradient flow to `data`, which this Tensor was made from, unless `requires_grad` is
        False."""
        if requires_grad is False or data.requires_grad is False or not modes.grad_enabled:
            self._requires_grad, self.uop = False, cut_gradient(self.uop)
        elif data.requires_grad and self.uop.dtype.is_float:
            self._requires_grad = self._derived = True

    def _become_new(self, source: Tensor, requires_grad: bool | None) -> None:
        """Take over the value of `source`, a new Tensor that has no other owner."""
        self._start(requires_grad)
        self.uop, self._device = source.uop, source._device
        register(self)
        if requires_grad:
            self._mark_leaf()

    def _from_uop(self, node: UOp, home: str | None, to: DType | None) -> None:
        if node.dtype is dtypes.index:
            node = UOp(Ops.CAST, declared_dtype(node) or dtypes.default_int, (node,))
        device: Any = home or device_of(node)
        self.uop, self._device = node if to is None else node.cast(to), device

    def _from_list(self, data: Any, home: str | None, to: DType | None) -> None:
        flat, shape = flatten(data)
        if flat and any(isinstance(x, Tensor) for x in flat):
            rows = [x if isinstance(x, Tensor) else Tensor(x, home) for x in flat]
            stacked = rows[0].stack(*rows[1:]).reshape(*shape, *rows[0].shape)
            self.uop, self._device = (
                stacked.uop if to is None else stacked.uop.cast(to),
                stacked._device or home,
            )
            return
        flat = [x if isinstance(x, (bool, int, float)) else _scalar(x) for x in flat]
        kind = dtype_of(flat) if to is None else to
        self._from_bytes(pack(flat, kind), home, kind, shape)

    def _from_array(self, data: Any, home: str | None, to: DType | None) -> None:
        bits = bfloat16_bits(data)
        if bits is not None:
            halves = Tensor(bits, home).bitcast(dtypes.bfloat16)
            self.uop, self._device = halves.uop if to is None else halves.uop.cast(to), halves._device
            return
        view = array_like(data)
        if view is None:
            raise DTypeError(
                f"Tensor: expected numbers, lists, arrays, bytes or Tensors, got {type(data).__name__}"
            )
        if isinstance(view, (list, tuple)):
            return self._from_list(view, home, to)
        raw, kind, shape = from_memoryview(view)
        if isinstance(data, (bytes, bytearray)) and to is not None:
            return self._from_bytes(raw, home, to, (check_count(raw, to),))
        if to is not None and kind is dtypes.float64 and not _has_float64(home):
            return self._from_bytes(pack(unpack(raw, kind), to), home, to, shape)
        self._from_bytes(raw, home, kind, shape)
        if to is not None:
            self.uop = self.uop.cast(to)

    def _from_file(self, path: Path, home: str | None, kind: DType) -> None:
        device = home or Device.DEFAULT
        node = buffer_of_file(path, device, kind)
        if node is None:
            self.uop, self._device = place_on_device(broadcast_constant(kind, 0, (0,)), home)
        else:
            self.uop, self._device = node, device

    @classmethod
    def from_url(cls, url: str, gunzip: bool = False, **kwargs: Any) -> Self:
        """The bytes (uint8, or elements of `dtype`) of the file at `url`, downloaded once: see `fetch`.

        `gunzip`: unpack the file. Keywords: device, dtype, requires_grad. Raises FetchError.

        >>> with open("two.bin", "wb") as file:
        ...     size = file.write(bytes([1, 2]))
        >>> Tensor.from_url("./two.bin").tolist()
        [1, 2]
        """
        return cls(fetch(url, gunzip=gunzip), **kwargs)

    @classmethod
    def from_blob(
        cls,
        address: int,
        shape: tuple[int, ...],
        dtype: DTypeLike = dtypes.float32,
        device: str | None = None,
        owner: Any = None,
    ) -> Self:
        """Memory of this process as a Tensor of `shape`, without a copy: a write to either is seen in both.

        The memory must live as long as the Tensor, which keeps `owner` alive for that. Kernels may read up to
        64 bytes before and after it, and ignore their values. Only on CPU and INTERP. Raises DeviceError,
        ShapeError, ArgumentError for an address that is not a multiple of an element's size.

        >>> memory = bytearray(256)
        >>> address = ctypes.addressof((ctypes.c_char * 256).from_buffer(memory))
        >>> t = Tensor.from_blob(address + 64, (2,), "uint8", device="INTERP", owner=memory)
        >>> memory[64] = 7
        >>> t.tolist()
        [7, 0]
        """
        sizes, kind = check_shape(shape, "from_blob"), to_dtype(dtype)
        home = Device.DEFAULT if device is None else Device.canonical(device)
        count = prod(sizes)
        if not isinstance(count, int) or not count:
            raise ShapeError(f"from_blob: expected fixed sizes of at least 1, got {sizes}")
        out = cls._of(buffer_at(address, count, home, kind, owner).reshape(sizes), home)
        storage_of(out)
        return out

    def _from_bytes(self, raw: memoryview, home: str | None, kind: DType, shape: tuple[int, ...]) -> None:
        if not raw.nbytes:
            self.uop, self._device = place_on_device(broadcast_constant(kind, 0, shape), home)
            return
        self._device = home or Device.DEFAULT
        memory = buffer_from(self._device, kind, raw)
        memory.arg.data_bounds = bounds_of_data(raw, kind)
        self.uop = memory.reshape(shape)


def _has_float64(home: str | None) -> bool:
    return Device.backend(Device.canonical(home or Device.DEFAULT)).target.float64


_CALLED_BY_LAYERS = ("_linear_of_rows",)
for _class in Tensor.__mro__[:-1]:
    synchronize_methods(_class, PYTHON_ERRORS, retry_or_explain, _CALLED_BY_LAYERS)
follow_mode(Tensor)


def _scalar(x: Any) -> Any:
    """A scalar of another library (numpy's, say) as a Python number."""
    if hasattr(x, "item") and not getattr(x, "shape", ()):
        return x.item()
    raise DTypeError(f"data: expected bools, ints or floats, got {type(x).__name__}: {x!r}")
