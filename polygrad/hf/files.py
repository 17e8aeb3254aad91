"""The small files besides the weights of a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polygrad.errors import ModelError
from polygrad.models.fields import Fields

# Files that a folder may have besides its weights. All are small, and `Instance.save` writes them.
_SMALL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    "preprocessor_config.json",
    "modules.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
)
_LARGEST_SMALL_FILE = 256 << 20
_TOKENIZERS = ("tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.model", "spiece.model")


def small_files(folder: Path) -> dict[str, bytes]:
    """The files of a folder except weights, by name. Raises ModelError for a huge file."""
    out = {}
    for name in _SMALL_FILES:
        path = folder / name
        if path.is_file():
            if path.stat().st_size > _LARGEST_SMALL_FILE:
                raise ModelError(f"{path}: {path.stat().st_size} bytes, more than {_LARGEST_SMALL_FILE}")
            out[name] = path.read_bytes()
    return out


def has_tokenizer(files: Mapping[str, bytes]) -> bool:
    """Whether there is a tokenizer among the files."""
    return any(name in files for name in _TOKENIZERS)


def json_fields(files: Mapping[str, bytes], name: str, missing: Any = None) -> Fields:
    """A JSON file as Fields. `missing`: what stands for a file that is not there, if it need not be.

    Raises ModelError when it is missing or damaged.
    """
    if name not in files:
        if missing is None:
            raise ModelError(f"{name}: missing")
        return Fields(missing, name)
    try:
        return Fields(json.loads(files[name]), name)
    except (ValueError, RecursionError) as e:
        raise ModelError(f"{name}: no JSON: {e}") from e
