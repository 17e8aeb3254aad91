"""The mapping between a model's weights and the tensors of a checkpoint: names and layouts.

Our names of a model's weights are the paths of its attributes, as in `nn.state.get_state_dict`. One set of
rules serves reading and writing: it gives for each of our names the location of the elements.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from polygrad.errors import ModelError
from polygrad.tensor.tensor import Tensor

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """Where the elements of one weight are: in the tensors `names`, stacked along a new first axis if
    `is_stack`; else in `part`, (first row, row after the last, rows), of the only one.

    `is_transposed`: the file has its two axes in the other order.
    """

    names: tuple[str, ...]
    is_stack: bool = False
    part: tuple[int, int, int] | None = None
    is_transposed: bool = False

    def shape_in_file(self, shape: Shape) -> Shape:
        """The shape that each of the tensors has, for a weight of `shape`."""
        if self.is_stack:
            return shape[1:]
        if self.part is not None:
            shape = (self.part[2], *shape[1:])
        return shape[::-1] if self.is_transposed else shape

    def read(self, tensors: list[Any]) -> Any:
        """The weight, from the tensors of the file, or from objects with the same methods."""
        if self.is_stack:
            return tensors[0].stack(*tensors[1:])
        (tensor,) = tensors
        tensor = tensor.transpose() if self.is_transposed else tensor
        return tensor if self.part is None else tensor[self.part[0] : self.part[1]]


@dataclass(frozen=True)
class Names:
    """The naming rules of a family of checkpoints.

    `renames`: (ours, theirs), applied in order to whole components of a path anywhere in it; `{}` is a
    number, the same on both sides. `joined`: (theirs, ours), several of our modules whose rows, in that
    order, are one module in the file. `transposed`: modules whose weight is (in, out) in the file. `stacked`:
    (ours, theirs), one tensor here, one for each index `{}` in the file. `elsewhere`: (theirs, theirs), an
    alternative name for a tensor that a file lacks: an old name, a longer one, or the weight that it is tied
    to. A rule that does not match is ignored.
    """

    renames: tuple[tuple[str, str], ...] = ()
    joined: tuple[tuple[str, tuple[str, ...]], ...] = ()
    transposed: tuple[str, ...] = ()
    stacked: tuple[tuple[str, str], ...] = ()
    elsewhere: tuple[tuple[str, str], ...] = ()

    def sources(self, shapes: Mapping[str, Shape]) -> dict[str, Source]:
        """The location of each weight, by our name, for weights of these shapes."""
        return {name: self._source(name, shapes) for name in shapes}

    def _source(self, name: str, shapes: Mapping[str, Shape]) -> Source:
        for ours, theirs in self.stacked:
            if name.endswith("." + ours):
                stem = name.removesuffix(ours)
                count = shapes[name][0]
                names = tuple(self.apply_renames(stem + theirs.replace("{}", str(i))) for i in range(count))
                return Source(names, is_stack=True)
        module, _, kind = name.rpartition(".")
        stem, _, last = module.rpartition(".")
        is_transposed = kind == "weight" and any(_ends(module, x) for x in self.transposed)
        for theirs, parts in self.joined:
            if last in parts:
                rows = [shapes[f"{stem}.{part}.{kind}"][0] for part in parts]
                first = sum(rows[: parts.index(last)])
                part = (first, first + rows[parts.index(last)], sum(rows))
                return Source((self.apply_renames(f"{stem}.{theirs}.{kind}"),), False, part, is_transposed)
        return Source((self.apply_renames(name),), is_transposed=is_transposed)

    def apply_renames(self, name: str) -> str:
        """Our name converted to the checkpoint's."""
        return _apply_renames(name, self.renames)

    def locate(self, sources: Mapping[str, Source], available: Container[str]) -> dict[str, Source]:
        """`sources` with alternative names, where the file has those `available`."""

        def place(name: str) -> str:
            places = [name]
            for rule in self.elsewhere if name not in available else ():
                candidates = [_apply_renames(p, [rule]) for p in places]
                places += [other for other in candidates if other not in places]
            return next((p for p in places if p in available), name)

        return {
            our_name: replace(s, names=tuple(place(n) for n in s.names)) for our_name, s in sources.items()
        }

    def within(self, prefix: str, *parts: str) -> Names:
        """This rulebook, also for files of a model that has this one as its part `prefix`. `parts`: the
        beginnings of the names."""
        longer = tuple((part, f"{prefix}.{part}") for part in parts)
        return replace(self, elsewhere=(*self.elsewhere, *longer))

    def to_file(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of a checkpoint, by its names, that holds `weights`."""
        shapes = {name: tuple(t.shape) for name, t in weights.items()}
        out: dict[str, Tensor] = {}
        parts: dict[str, list[tuple[int, Tensor]]] = {}
        for name, source in self.sources(shapes).items():
            value = weights[name]
            if source.is_stack:
                out |= {theirs: value[i] for i, theirs in enumerate(source.names)}
            elif source.part is not None:
                parts.setdefault(source.names[0], []).append((source.part[0], value))
            else:
                out[source.names[0]] = value.transpose() if source.is_transposed else value
        is_transposed = {s.names[0]: s.is_transposed for s in self.sources(shapes).values()}
        for name, values in parts.items():
            first, *other_values = (value for _, value in sorted(values, key=lambda pair: pair[0]))
            stacked = first.cat(*other_values)
            out[name] = stacked.transpose() if is_transposed[name] else stacked
        return out


def _apply_renames(name: str, renames: Iterable[tuple[str, str]]) -> str:
    for pattern, replacement in (_compile(*pair) for pair in renames):
        name = pattern.sub(replacement, name)
    return name


def _ends(path: str, tail: str) -> bool:
    return path == tail or path.endswith("." + tail)


def _compile(ours: str, theirs: str) -> tuple[re.Pattern[str], str]:
    pattern = r"(?<![^.])" + re.escape(ours).replace(r"\{\}", r"(\d+)") + r"(?![^.])"
    parts = theirs.split("{}")
    return re.compile(pattern), "".join(
        part + (rf"\g<{i + 1}>" if i < len(parts) - 1 else "") for i, part in enumerate(parts)
    )


def find_sources(
    shapes: Mapping[str, Shape], names: Names, available: Mapping[str, Shape], where: str
) -> dict[str, Source]:
    """The location of each weight, for weights of `shapes`, in a checkpoint that has tensors of the shapes
    `available`. Raises ModelError, which names tensors that are missing or have another shape."""
    sources = names.locate(names.sources(shapes), available)
    missing = [n for source in sources.values() for n in source.names if n not in available]
    if missing:
        raise ModelError(
            f"{where}: {len(missing)} tensors are missing, of {len(available)} that are there: "
            f"{', '.join(missing[:5])}"
        )
    for name, source in sources.items():
        expected = source.shape_in_file(shapes[name])
        for theirs in source.names:
            if available[theirs] != expected:
                raise ModelError(
                    f"{where}: {theirs}: shape {available[theirs]}, but the configuration makes it {expected}"
                )
    return sources
