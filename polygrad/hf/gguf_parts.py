"""Models that are several GGUF files: `name-00001-of-00003.gguf` and the others, as llama-gguf-split writes.

The first has all metadata; each has tensors of its own, and says which part of how many it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polygrad.errors import ArgumentError, ModelError
from polygrad.hf.checkpoint import map_file
from polygrad.models.fields import Fields
from polygrad.nn.gguf import Blocks, read_gguf

_NAME = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)
_MOST = 1 << 16  # parts: the count has 16 bits


def map_parts(path: Path) -> dict[str, memoryview]:
    """The bytes of a GGUF file by its name; of a part, those of all parts in order. Raises ModelError, which
    names a part that is missing."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        return {path.name: map_file(path)}
    stem, count = match[1], int(match[3])
    names = (f"{stem}-{number:05d}-of-{count:05d}.gguf" for number in range(1, count + 1))
    out = {}
    for name in names:
        if not (path.parent / name).is_file():
            raise ModelError(f"{path.parent / name}: missing, one of the {count} parts of {path.name}")
        out[name] = map_file(path.parent / name)
    return out


def read_parts(parts: Mapping[str, memoryview]) -> tuple[str, dict[str, Any], dict[str, Blocks]]:
    """The name and the metadata of the first part, and the tensors of all. Raises ModelError for parts of
    other files, in another order, or too few of them."""
    first = ""
    metadata: dict[str, Any] = {}
    tensors: dict[str, Blocks] = {}
    for number, (name, data) in enumerate(parts.items()):
        try:
            part_metadata, part_tensors = read_gguf(data)
        except ArgumentError as e:
            raise ModelError(f"{name}: {e}") from e
        fields = Fields(part_metadata, name)
        count = fields.integer("split.count", 1, least=0, largest=_MOST)
        if max(count, 1) != len(parts):
            raise fields.refuse("split.count", f"the number of parts that there are, {len(parts)}")
        if fields.integer("split.no", 0, least=0) != number:
            raise fields.refuse("split.no", f"{number}, as the parts are in order")
        twice = sorted(set(tensors) & set(part_tensors))
        if twice:
            raise ModelError(f"{name}: tensor {twice[0]!r:.80} is in another part, too")
        if number == 0:
            first, metadata = name, part_metadata
        tensors |= part_tensors
    expected_count = Fields(metadata, first).integer("split.tensors.count", len(tensors), least=0)
    if expected_count != len(tensors):
        raise ModelError(
            f"{first}: split.tensors.count: {expected_count}, and the parts have {len(tensors)} tensors"
        )
    return first, metadata, tensors
