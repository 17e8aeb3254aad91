"""Patterns of `Tensor.rearrange`, in einops' notation: how axes are split, permuted and merged.

Knows sizes and names, no Tensors. The notation is Rogozhnikov's ("Einops: clear and reliable tensor
manipulations with Einstein-like notation", 2022).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import prod

_TOKEN = re.compile(r"\s+|(?P<token>\.\.\.|…|->|[()]|[A-Za-z][A-Za-z0-9_]*|\d+)")
_DOTS = "..."
_AXES = "the axes of an ellipsis"  # an ellipsis outside of parentheses


@dataclass(frozen=True)
class RearrangePlan:
    """`reshape(split).permute(order).reshape(merged)`."""

    split: tuple[Any, ...]
    order: tuple[int, ...]
    merged: tuple[Any, ...]


def _tokens(formula: str) -> list[str]:
    out, position = [], 0
    while position < len(formula):
        match = _TOKEN.match(formula, position)
        if match is None:
            raise ArgumentError(f"rearrange: expected names, 1, '...', '(', ')' or '->' in {formula!r}, got "
                                f"{formula[position]!r}")  # fmt: skip
        position = match.end()
        if match["token"]:
            out.append(_DOTS if match["token"] == "…" else match["token"])
    return out


def _groups(tokens: Sequence[str], formula: str) -> list[list[str]]:
    """One side of a formula: the names that make up each axis."""
    out: list[list[str]] = []
    open_group: list[str] | None = None
    for token in tokens:
        if token == "(":
            if open_group is not None:
                raise ArgumentError(f"rearrange: expected no parentheses within parentheses in {formula!r}")
            open_group = []
        elif token == ")":
            if open_group is None:
                raise ArgumentError(f"rearrange: expected '(' before ')' in {formula!r}")
            out.append(open_group)
            open_group = None
        elif open_group is not None:
            open_group.append(token)
        else:
            out.append([_AXES if token == _DOTS else token])
    if open_group is not None:
        raise ArgumentError(f"rearrange: expected ')' in {formula!r}")
    return out


def plan(formula: str, shape: Sequence[Any], sizes: Mapping[str, int]) -> RearrangePlan:
    """The plan of `formula` for a Tensor of `shape`, with the given sizes of some axes. Raises ArgumentError,
    ShapeError."""
    tokens = _tokens(formula)
    if tokens.count("->") != 1:
        raise ArgumentError(f"rearrange: expected one '->' in {formula!r}")
    arrow = tokens.index("->")
    left, right = _groups(tokens[:arrow], formula), _groups(tokens[arrow + 1 :], formula)
    left, lead = _with_dots(left, len(shape), formula)
    right = [g for group in right for g in ([[name] for name in lead] if group == [_AXES] else [group])]
    right = [[name for t in group for name in (lead if t == _DOTS else [t])] for group in right]
    if len(left) != len(shape):
        raise ShapeError(f"rearrange: {formula!r} names {len(left)} axes, got shape {tuple(shape)}")
    known_sizes: dict[str, Any] = dict(sizes)
    split: list[Any] = []
    names: list[str] = []
    for group, n in zip(left, shape, strict=True):
        group_names = [name for name in group if not name.isdigit()]
        anonymous = prod([int(t) for t in group if t.isdigit()])
        if any(t.isdigit() and t != "1" for t in group):
            raise ArgumentError(f"rearrange: expected 1 as the only number on the left of {formula!r}")
        unknown_names = [name for name in group_names if name not in known_sizes]
        if len(unknown_names) > 1:
            raise ArgumentError(
                f"rearrange: expected the sizes of all but one of {group_names} in {formula!r}"
            )
        known_product = prod([known_sizes[name] for name in group_names if name in known_sizes]) * anonymous
        if unknown_names:
            if isinstance(n, int) and (known_product == 0 or n % known_product):
                raise ShapeError(
                    f"rearrange: an axis of {n} elements does not divide by {known_product} in {formula!r}"
                )
            known_sizes[unknown_names[0]] = n // known_product
        elif isinstance(n, int) and known_product != n:
            raise ShapeError(
                f"rearrange: expected an axis of {known_product} elements in {formula!r}, got {n}"
            )
        names += group_names
        split += [known_sizes[name] for name in group_names]
    of_right = [name for group in right for name in group if not name.isdigit()]
    if len(set(names)) != len(names) or len(set(of_right)) != len(of_right) or set(names) != set(of_right):
        raise ArgumentError(f"rearrange: expected each name once on both sides of {formula!r}")
    unused_sizes = [name for name in sizes if name not in names]
    if unused_sizes:
        raise ArgumentError(
            f"rearrange: expected sizes of names in {formula!r}, got one of {unused_sizes[0]!r}"
        )
    if any(t.isdigit() and t != "1" for group in right for t in group):
        raise ArgumentError(f"rearrange: expected 1 as the only number in {formula!r}")
    merged_shape = [prod([known_sizes[name] for name in group if not name.isdigit()]) for group in right]
    return RearrangePlan(tuple(split), tuple([names.index(name) for name in of_right]), tuple(merged_shape))


def _with_dots(left: list[list[str]], ndim: int, formula: str) -> tuple[list[list[str]], list[str]]:
    """The left side with names for the axes of its ellipsis, and these names."""
    if any(_DOTS in group for group in left):
        raise ArgumentError(f"rearrange: expected '...' outside of parentheses on the left of {formula!r}")
    places = [i for i, group in enumerate(left) if group == [_AXES]]
    if not places:
        return left, []
    count = ndim - len(left) + 1
    if len(places) > 1 or count < 0:
        raise ArgumentError(f"rearrange: {formula!r} does not fit {ndim} axes")
    lead = [f".{i}" for i in range(count)]
    return [*left[: places[0]], *[[name] for name in lead], *left[places[0] + 1 :]], lead
