"""Checkpoints of GPTQ (Frantar et al., 2022) and AWQ (Lin et al., 2023): matrices in 4 bits as three or four
tensors, which are read as PackedWeights of the kind int4.

Both pack 8 numbers into words of 32 bits: GPTQ packs rows of the transposed weight, AWQ columns, in a special
order. A number is scale * (q - zero).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import ModelError
from polygrad.hf.checkpoint import Checkpoint, Shape
from polygrad.models.fields import Fields
from polygrad.nn.packed import PackedWeight
from polygrad.tensor.tensor import Tensor

_PER_WORD = 8
_BITS = 4
_AWQ_PLACES = (0, 4, 1, 5, 2, 6, 3, 7)  # the places of columns 0 to 7 in a word
_PARTS = (".qweight", ".qzeros", ".scales", ".g_idx")


def apply_quantization_config(config: Fields, checkpoint: Any) -> tuple[Fields, Any]:
    """The configuration without `quantization_config`, which describes the file and not the model, and the
    checkpoint read accordingly. Raises ModelError."""
    if "quantization_config" not in config:
        return config, checkpoint
    settings = config.section("quantization_config")
    if settings.values.get("quant_method") in METHODS:
        checkpoint = FourBitCheckpoint(checkpoint, settings)
    return Fields(
        {k: v for k, v in config.values.items() if k != "quantization_config"}, config.where
    ), checkpoint


@dataclass(frozen=True)
class _PackingFormat:
    """`group`: how many numbers of a row share a scale; 0: all. `rows_are_joined`: words of `qweight` go
    along its first axis. `places`: of the numbers in other words. `added`: to the zeros that are stored."""

    group: int
    rows_are_joined: bool
    places: tuple[int, ...]
    added: int


class FourBitCheckpoint:
    """A checkpoint of GPTQ or AWQ: `inner` with one `weight` in the place of each `qweight` and its parts."""

    def __init__(self, inner: Checkpoint, settings: Fields) -> None:
        self.where, self._inner, self._format = inner.where, inner, _format(settings)
        stems = [name.removesuffix(".qweight") for name in inner.shapes if name.endswith(".qweight")]
        if not stems:
            raise settings.refuse("quant_method", f"a method that {inner.where} has tensors of: no qweight")
        parts = {stem + part for stem in stems for part in _PARTS}
        self.shapes: dict[str, Shape] = {n: s for n, s in inner.shapes.items() if n not in parts}
        for stem in stems:
            self.shapes[f"{stem}.weight"] = self._shape(stem)

    def dtype(self, name: str) -> DType:
        """The dtype in the file; of packed weights that of their scales."""
        stem = name.removesuffix(".weight")
        is_packed = f"{stem}.qweight" in self._inner.shapes
        dtype: DType = self._inner.dtype(f"{stem}.scales" if is_packed else name)
        return dtype

    def parts(self, name: str) -> list[str]:
        """See `Checkpoint`."""
        stem = name.removesuffix(".weight")
        if stem == name or f"{stem}.qweight" not in self._inner.shapes:
            return self._inner.parts(name)
        return [stem + part for part in _PARTS if stem + part in self._inner.shapes]

    def read(self, name: str, device: str | None) -> Tensor | PackedWeight:
        """See `Checkpoint`."""
        stem = name.removesuffix(".weight")
        if stem == name or f"{stem}.qweight" not in self._inner.shapes:
            return self._inner.read(name, device)
        out, columns = self.shapes[name]
        words, zeros, scales = (
            self._inner.read(stem + part, device) for part in (".qweight", ".qzeros", ".scales")
        )
        for part, tensor in ((".qweight", words), (".qzeros", zeros)):
            if tensor.dtype is not dtypes.int32:
                raise ModelError(f"{self.where}: {stem}{part}: expected int32, got {tensor.dtype}")
        groups = scales.shape[0]
        self._check_order(stem, columns, columns // groups, device)
        if self._format.rows_are_joined:
            q = _numbers(words.unsqueeze(1), range(_PER_WORD), axis=1).reshape(columns, out)
        else:
            q = _numbers(words.unsqueeze(2), self._format.places, axis=2).reshape(columns, out)
        q = q.transpose().reshape(out, groups, 2, columns // groups // 2)
        zeros = _numbers(zeros.unsqueeze(2), self._format.places, axis=2).reshape(groups, out)
        planes = {
            "scales": scales.transpose(),
            "zeros": zeros.transpose() + self._format.added,
            "bits": q[:, :, 0] + q[:, :, 1] * (1 << _BITS),
        }
        return PackedWeight("int4", planes)

    def _shape(self, stem: str) -> Shape:
        """Of the weight (out, columns), whose parts have the right shapes. Raises ModelError."""
        shapes = self._inner.shapes
        words = shapes[f"{stem}.qweight"]
        if len(words) != 2 or 0 in words:
            raise ModelError(f"{self.where}: {stem}.qweight: expected a matrix, got shape {words}")
        rows_are_joined = self._format.rows_are_joined
        columns, out = (
            (words[0] * _PER_WORD, words[1]) if rows_are_joined else (words[0], words[1] * _PER_WORD)
        )
        group = self._format.group or columns
        if columns % group or group % 2:
            raise ModelError(f"{self.where}: {stem}.qweight: {columns} columns in groups of {group}")
        groups = columns // group
        for part, expected in ((".scales", (groups, out)), (".qzeros", (groups, out // _PER_WORD))):
            shape = shapes.get(stem + part)
            if shape != expected or out % _PER_WORD:
                raise ModelError(f"{self.where}: {stem}{part}: expected shape {expected}, got {shape}")
        return out, columns

    def _check_order(self, stem: str, columns: int, group: int, device: str | None) -> None:
        """Raises ModelError unless the groups are those of neighbours."""
        name = f"{stem}.g_idx"
        if name not in self._inner.shapes:
            return
        order = self._inner.read(name, device)
        expected = Tensor.arange(columns, dtype=dtypes.int32, device=order.device) // group
        if order.shape != (columns,) or order.ne(expected).any().item():
            raise ModelError(
                f"{self.where}: {name}: columns are grouped by their importance (desc_act): expected groups "
                f"of {group} neighbours"
            )


def _numbers(words: Tensor, places: Any, axis: int) -> Tensor:
    """The 8 numbers of each word of int32, along an axis of size 1, as uint8."""
    shape = [1] * words.ndim
    shape[axis] = _PER_WORD
    shifts = Tensor([_BITS * p for p in places], dtype=dtypes.uint32, device=words.device).reshape(shape)
    return ((words.bitcast(dtypes.uint32) >> shifts) & ((1 << _BITS) - 1)).cast(dtypes.uint8)


def _format(settings: Fields) -> _PackingFormat:
    bits = settings.integer("bits", _BITS)
    if bits != _BITS:
        raise settings.refuse("bits", str(_BITS))
    group = settings.integer("group_size", 128, least=-1)
    return METHODS[settings.choice("quant_method", METHODS)](settings, max(group, 0))


def _gptq(settings: Fields, group: int) -> _PackingFormat:
    """GPTQ's packing. The first version of the format stores zero points minus 1."""
    version = settings.choice("checkpoint_format", ("gptq", "gptq_v2"), "gptq")
    return _PackingFormat(group, True, tuple(range(_PER_WORD)), 1 if version == "gptq" else 0)


def _awq(settings: Fields, group: int) -> _PackingFormat:
    settings.choice("version", ("gemm", "GEMM"), "gemm")
    return _PackingFormat(group, False, _AWQ_PLACES, 0)


METHODS: dict[str, Callable[[Fields, int], _PackingFormat]] = {"awq": _awq, "gptq": _gptq}
