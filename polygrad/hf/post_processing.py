"""Post-processors: special tokens around a text's ids, and type ids that tell two texts apart.

The post-processors of tokenizer.json. They work on ids alone, so they are the same on every host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TemplatePiece:
    """One element of a template: a special token's `ids`, or text `sequence` (0 or 1), which has none."""

    ids: tuple[int, ...]
    type_id: int
    sequence: int | None = None


@dataclass(frozen=True, slots=True)
class PostProcessor:
    """The templates for one text and for two texts."""

    single: tuple[TemplatePiece, ...] = (TemplatePiece((), 0, 0),)
    pair: tuple[TemplatePiece, ...] = (TemplatePiece((), 0, 0), TemplatePiece((), 1, 1))

    def overhead(self, is_pair: bool) -> int:
        """The number of special tokens that are added."""
        return sum(len(piece.ids) for piece in (self.pair if is_pair else self.single))

    def join(self, texts: Sequence[Sequence[int]], special: bool = True) -> tuple[list[int], list[int]]:
        """The ids of one or two texts with special tokens, if `special`, and the type ids."""
        ids: list[int] = []
        types: list[int] = []
        for piece in self.pair if len(texts) == 2 else self.single:
            new = piece.ids if piece.sequence is None else texts[piece.sequence]
            if special or piece.sequence is not None:
                ids += new
                types += [piece.type_id] * len(new)
        return ids, types


def post_processor(data: dict[str, Any] | None, ids: dict[str, int]) -> PostProcessor:
    """Of the checked entry `post_processor` of a tokenizer.json with the vocabulary `ids`."""
    processor = PostProcessor()
    for entry in _flat(data):
        if entry["type"] == "TemplateProcessing":
            processor = PostProcessor(_template(entry, "single"), _template(entry, "pair"))
        elif entry["type"] in ("BertProcessing", "RobertaProcessing"):
            cls, sep = TemplatePiece((entry["cls"][1],), 0), TemplatePiece((entry["sep"][1],), 0)
            first, second = TemplatePiece((), 0, 0), TemplatePiece((), 1, 1)
            if entry["type"] == "BertProcessing":
                pair: tuple[TemplatePiece, ...] = (cls, first, sep, second, TemplatePiece(sep.ids, 1))
            else:
                pair = (cls, first, sep, sep, TemplatePiece((), 0, 1), sep)
            processor = PostProcessor((cls, first, sep), pair)
    return processor


def _flat(data: dict[str, Any] | None) -> list[dict[str, Any]]:
    if data is None:
        return []
    return [x for child in data["processors"] for x in _flat(child)] if data["type"] == "Sequence" else [data]


def _template(entry: dict[str, Any], name: str) -> tuple[TemplatePiece, ...]:
    out = []
    for item in entry[name]:
        [(kind, value)] = item.items()
        type_id = value.get("type_id", 0)
        if kind == "SpecialToken":
            out.append(TemplatePiece(tuple(entry["special_tokens"][value["id"]]["ids"]), type_id))
        else:
            out.append(TemplatePiece((), type_id, "AB".index(value["id"])))
    return tuple(out)
