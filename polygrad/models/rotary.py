"""Rotary position embedding (Su et al., 2021), and its extensions to longer contexts.

Frequencies are numbers of Python, from the configuration alone: `frequencies` has one function for each
`rope_type`. Sources: linear, Chen et al. 2023; llama3, the Llama 3.1 report; yarn, Peng et al. 2023;
longrope, Ding et al. 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from polygrad.models.fields import Fields
from polygrad.tensor.tensor import Tensor

_LARGEST_HEAD = 1 << 14  # a configuration has no larger ones


@dataclass(frozen=True)
class Rotation:
    """The rotary embedding at some positions: `cos` and `sin`, (batch or 1, 1, length, pairs)."""

    cos: Tensor
    sin: Tensor

    def turn(self, x: Tensor) -> Tensor:
        """Rotate x (batch, heads, length, size). Element i of the first half of the rotated part is paired
        with element i of the second half. Elements beyond twice the number of pairs do not change."""
        pairs = self.cos.shape[-1]
        a, b = x[..., :pairs], x[..., pairs : 2 * pairs]
        rotated = [a * self.cos - b * self.sin, b * self.cos + a * self.sin]
        if x.shape[-1] > 2 * pairs:
            rotated.append(x[..., 2 * pairs :])
        return rotated[0].cat(*rotated[1:], dim=-1)


@dataclass(frozen=True)
class Rotary:
    """Frequencies of a rotary embedding; `scale`: the factor of cosines and sines.

    `long`: frequencies and scale for sequences longer than `short_length`; None: the same for all.
    """

    frequencies: tuple[float, ...]
    scale: float = 1.0
    long: tuple[float, ...] | None = None
    short_length: int = 0

    def at(self, positions: Tensor, length: int) -> Rotation:
        """The rotation at int32 positions (batch or 1, length), in sequences of up to `length` tokens.

        Cosines and sines are computed once, for all layers that read them.
        """
        is_long = self.long is not None and length > self.short_length
        frequencies = self.long if is_long and self.long is not None else self.frequencies
        step = Tensor(list(frequencies), device=positions.device)
        angles = positions.float().unsqueeze(-1).unsqueeze(1) * step
        return Rotation(
            (angles.cos() * self.scale).contiguous(),
            (angles.sin() * self.scale).contiguous(),
        )


def rotary(config: Fields, head_size: int, theta: float = 10000.0, layer_type: str | None = None) -> Rotary:
    """The rotary embedding of a configuration, for heads of `head_size`; `theta`: the default.

    Newer files have all in `rope_parameters`, for each `layer_type` where layers differ; older ones
    `rope_theta`, and `rope_scaling` if any. Raises ModelError.
    """
    if "rope_parameters" in config:
        rope = config.section("rope_parameters")
        if layer_type is not None and layer_type in rope:
            rope = rope.section(layer_type)
    else:
        rope = config.section("rope_scaling", {})
    # older files have theta outside of the section
    theta = rope.number("rope_theta", config.number("rope_theta", theta))
    part = rope.number("partial_rotary_factor", config.number("partial_rotary_factor", 1.0))
    kind = rope.choice("rope_type" if "rope_type" in rope else "type", _SCALINGS, "default")
    if theta <= 0:
        raise rope.refuse("rope_theta", "a number above 0")
    if not 0 < part <= 1:
        raise rope.refuse("partial_rotary_factor", "a number above 0, at most 1")
    size = int(head_size * part)
    if size > _LARGEST_HEAD:
        raise config.refuse("head_dim", f"heads of at most {_LARGEST_HEAD}")
    plain = tuple(theta ** (-i / size) for i in range(0, size, 2))
    return _SCALINGS[kind](rope, config, plain, theta)


def _default(rope: Fields, config: Fields, plain: tuple[float, ...], theta: float) -> Rotary:
    return Rotary(plain)


def _linear(rope: Fields, config: Fields, plain: tuple[float, ...], theta: float) -> Rotary:
    """Positions are divided by a factor."""
    factor = rope.number("factor")
    return Rotary(tuple(f / factor for f in plain))


def _dynamic(rope: Fields, config: Fields, plain: tuple[float, ...], theta: float) -> Rotary:
    """Sequences longer than those of training use another base: `theta` grows with their greatest length."""
    factor, length = rope.number("factor"), config.integer("max_position_embeddings")
    original = rope.integer("original_max_position_embeddings", length)
    size = 2 * len(plain)
    base = theta * (factor * length / original - (factor - 1)) ** (size / (size - 2))
    return Rotary(tuple(base ** (-i / size) for i in range(0, size, 2)))


def _llama3(rope: Fields, config: Fields, plain: tuple[float, ...], theta: float) -> Rotary:
    """Waves longer than the texts of training are stretched by a factor, short waves are unchanged, and waves
    between are a mixture of both."""
    factor = rope.number("factor")
    low, high = rope.number("low_freq_factor"), rope.number("high_freq_factor")
    length = rope.integer("original_max_position_embeddings", config.integer("max_position_embeddings"))
    if high <= low:
        raise rope.refuse("high_freq_factor", f"more than low_freq_factor, {low}")

    def stretch(frequency: float) -> float:
        turns = length * frequency / (2 * math.pi)  # in a text of training
        part = min(max((turns - low) / (high - low), 0.0), 1.0)
        return frequency * (part + (1 - part) / factor)

    return Rotary(tuple(stretch(f) for f in plain))


def _yarn(rope: Fields, config: Fields, plain: tuple[float, ...], theta: float) -> Rotary:
    """As llama3, with a ramp over the numbers of the pairs; scores have another temperature."""
    factor = rope.number("factor")
    length = rope.integer("original_max_position_embeddings", config.integer("max_position_embeddings"))
    size = 2 * len(plain)

    def pair_that_turns(times: float) -> float:
        return size * math.log(length / (times * 2 * math.pi)) / (2 * math.log(theta))

    first = pair_that_turns(rope.number("beta_fast", 32.0))
    last = pair_that_turns(rope.number("beta_slow", 1.0))
    if rope.flag("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, size - 1)
    span = max(last - first, 0.001)

    def stretch(i: int, frequency: float) -> float:
        part = min(max((i - first) / span, 0.0), 1.0)  # of the stretched frequency
        return frequency * (1 - part + part / factor)

    scale = rope.number("attention_factor", None)
    if scale is None:
        scales = [rope.number(name, 0.0) for name in ("mscale", "mscale_all_dim")]
        scale = _temperature(factor, 1.0)
        if all(scales):
            scale = _temperature(factor, scales[0]) / _temperature(factor, scales[1])
    return Rotary(tuple(stretch(i, f) for i, f in enumerate(plain)), scale)


def _temperature(factor: float, weight: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def _longrope(rope: Fields, config: Fields, plain: tuple[float, ...], theta: float) -> Rotary:
    """A factor for each pair, others for sequences longer than those of training."""
    short, long = (rope.items(name, (int, float)) for name in ("short_factor", "long_factor"))
    if not len(short) == len(long) == len(plain):
        raise rope.refuse("long_factor", f"{len(plain)} numbers, as many as in short_factor")
    max_positions = config.integer("max_position_embeddings")
    length = rope.integer(
        "original_max_position_embeddings", config.integer("original_max_position_embeddings", max_positions)
    )
    factor = rope.number("factor", max_positions / length)
    scale = rope.number("attention_factor", None)
    if scale is None:
        scale = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(length))
    frequency_lists = [tuple(f / by for f, by in zip(plain, factors)) for factors in (short, long)]
    return Rotary(frequency_lists[0], scale, frequency_lists[1], length)


_SCALINGS: dict[str, Callable[[Fields, Fields, tuple[float, ...], float], Rotary]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
    "su": _longrope,
}
