"""The small files besides the weights of a model."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from polygrad.errors import ModelError
from polygrad.models.fields import Fields

# Files that a folder may have besides its weights, by what they are for. All are small, and `Instance.save`
# writes them.
_FILES = {
    "model": ("config.json",),
    "text": (
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
    ),
    "old tokenizers": ("vocab.json", "merges.txt", "vocab.txt", "tokenizer.model", "spiece.model"),
    "answers": ("generation_config.json",),
    "conversations": ("chat_template.jinja", "chat_template.json"),
    "images": ("preprocessor_config.json",),
    "vectors": ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json"),
    "notices": ("LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE", "NOTICE.txt", "README.md"),
}
_SMALL_FILES = tuple(name for names in _FILES.values() for name in names)
_LARGEST_SMALL_FILE = 256 << 20
_TOKENIZERS = ("tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.model", "spiece.model")


def files_for(purposes: Sequence[str], there: Container[str], missing: Container[str]) -> list[str]:
    """Which small files to look for next, for someone who has to ask for each: those `there` have been found,
    those `missing` have not. Older kinds of tokenizers are looked for where there is no tokenizer.json.

    >>> files_for(("model", "images"), {"config.json"}, ())
    ['preprocessor_config.json']
    >>> files_for(("text",), (), _FILES["text"])
    ['vocab.json', 'merges.txt', 'vocab.txt', 'tokenizer.model', 'spiece.model']
    """
    names = [name for purpose in purposes for name in _FILES[purpose]]
    if "text" in purposes and "tokenizer.json" in missing:
        names += _FILES["old tokenizers"]
    return [name for name in names if name not in there and name not in missing]


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


def notices(files: Mapping[str, bytes], metadata: Mapping[str, Any]) -> dict[str, bytes]:
    """The files that say whose a model is and what one may do with it: its licence, its card, and
    `general.json` with what a GGUF file says of that (`metadata`)."""
    out = {name: files[name] for name in _FILES["notices"] if name in files}
    general = {name: value for name, value in metadata.items() if name.startswith("general.")}
    texts = {name: value for name, value in sorted(general.items()) if isinstance(value, str)}
    if texts:
        out["general.json"] = json.dumps(texts, indent=2).encode()
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
