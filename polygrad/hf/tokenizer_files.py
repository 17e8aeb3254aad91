"""The files of a tokenizer in a folder, and their contents in one checked form.

Knows no library that tokenizes. `polygrad/hf/legacy.py` converts folders without tokenizer.json.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polygrad.errors import ArgumentError, ModelError
from polygrad.hf import tokenizer_json
from polygrad.hf.legacy import LEGACY_FILES, convert_legacy
from polygrad.hf.tokenizer_json import TokenizerJson, check_tokenizer, parse_object

TOKENIZER, CONFIG, SPECIAL = tokenizer_json.FILE, "tokenizer_config.json", "special_tokens_map.json"
CHAT, ADDED, GENERATION = "chat_template.jinja", "added_tokens.json", "generation_config.json"
FILES = (TOKENIZER, CONFIG, SPECIAL, CHAT, ADDED, GENERATION, *LEGACY_FILES)
SPECIAL_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_FLAGS = ("lstrip", "normalized", "rstrip", "single_word", "special")
_LARGEST_FILE = 1 << 29


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """The checked contents of a tokenizer's files.

    `file` names where the vocabulary is from, `special` has the tokens by their names (`eos_token`),
    `end_ids` are further ids that end a text, `templates` the chat templates by name.
    """

    file: str
    tokenizer: TokenizerJson
    special: dict[str, str] = field(default_factory=dict)
    templates: dict[str, str] = field(default_factory=dict)
    end_ids: tuple[int, ...] = ()
    padding_side: str = "right"
    cleans_up: bool = False


def read_folder(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """The bytes of each file of a tokenizer in a folder. Raises ModelError when it is none."""
    folder = Path(path)
    if not folder.is_dir():
        raise ModelError(
            f"Tokenizer: expected a folder with {TOKENIZER}, got {os.fspath(path)!r}, which is none"
        )
    out = {}
    for name in FILES:
        file = folder / name
        if not file.is_file():
            continue
        if file.stat().st_size > _LARGEST_FILE:
            raise ModelError(f"{name}: {file.stat().st_size} bytes, expected at most {_LARGEST_FILE}")
        out[name] = file.read_bytes()
    return out


def read_files(files: Mapping[str, bytes]) -> TokenizerFiles:
    """By the bytes of each file. Raises ModelError that names the file and the entry."""
    for name, raw in files.items():
        if not isinstance(name, str) or not isinstance(raw, (bytes, bytearray, memoryview)):
            raise ArgumentError(
                f"Tokenizer: expected bytes by the names of files, got {name!r}: {type(raw).__name__}"
            )
    config = parse_object(files[CONFIG], CONFIG) if CONFIG in files else {}
    config = {**(parse_object(files[SPECIAL], SPECIAL) if SPECIAL in files else {}), **config}
    if TOKENIZER in files:
        file, data = TOKENIZER, parse_object(files[TOKENIZER], TOKENIZER)
    else:
        file, data = convert_legacy(files, config)
    if ADDED in files:
        config[ADDED] = parse_object(files[ADDED], ADDED)
    templates = {"default": _text(files[CHAT], CHAT)} if CHAT in files else {}
    return finish_tokenizer(file, data, config, templates, _end_ids(files))


def finish_tokenizer(
    file: str,
    data: dict[str, Any],
    config: dict[str, Any],
    templates: Mapping[str, str] | None = None,
    end_ids: tuple[int, ...] = (),
) -> TokenizerFiles:
    """`data` in the form of tokenizer.json, found in `file`, with what `config` adds. Raises ModelError."""
    special = {name: entry for name in SPECIAL_NAMES if (entry := _token(config, name)) is not None}
    data = _with_tokens(data, config, special, file)
    data = _with_ends(data, config, special)
    checked = check_tokenizer(data, file)
    return TokenizerFiles(
        file,
        checked,
        {name: entry["content"] for name, entry in special.items()},
        {**_templates(config), **(templates or {})},
        end_ids,
        _padding_side(config),
        config.get("clean_up_tokenization_spaces") is True and checked.model != "BPE",
    )


def _text(raw: bytes, file: str) -> str:
    try:
        return bytes(raw).decode("utf-8")
    except UnicodeDecodeError as e:
        raise ModelError(f"{file}: expected UTF-8, which byte {e.start} is not") from None


def _token(config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """A special token as an entry of `added_tokens` without its id; None if there is none."""
    value = config.get(name)
    return None if value is None else _read_added_tokens(value, name)


def _read_added_tokens(value: Any, name: str) -> dict[str, Any]:
    entry = {"content": value} if isinstance(value, str) else value
    if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or not entry["content"]:
        raise ModelError(f"{CONFIG}: {name}: expected a token, got {value!r:.80}")
    return entry


def _with_tokens(
    data: dict[str, Any],
    config: dict[str, Any],
    special: dict[str, dict[str, Any]],
    file: str,
) -> dict[str, Any]:
    """`data` with the added tokens that other files name and it lacks."""
    added_tokens = data.get("added_tokens") or []
    if not isinstance(added_tokens, list):
        return data  # refused when it is checked
    known_tokens: dict[Any, Any] = {
        entry.get("content"): entry.get("id") for entry in added_tokens if isinstance(entry, dict)
    }
    vocabulary = _vocabulary(data)
    config_tokens: list[tuple[dict[str, Any], int | None]] = []
    decoder = config.get("added_tokens_decoder") or {}
    if not isinstance(decoder, dict):
        raise ModelError(f"{CONFIG}: added_tokens_decoder: expected an object, got {type(decoder).__name__}")
    for number, entry in decoder.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or not number.isdecimal():
            raise ModelError(
                f"{CONFIG}: added_tokens_decoder: {number!r:.40}: expected a token, got {entry!r:.80}"
            )
        config_tokens.append((entry, int(number)))
    config_tokens += [({"content": content}, number) for content, number in config.get(ADDED, {}).items()]
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    if not isinstance(extra, (list, dict)):
        raise ModelError(f"{CONFIG}: extra_special_tokens: expected tokens, got {type(extra).__name__}")
    names = [
        _read_added_tokens(x, "extra_special_tokens")
        for x in (extra.values() if isinstance(extra, dict) else extra)
    ]
    config_tokens += [({**entry, "special": True}, None) for entry in [*special.values(), *names]]
    out = list(added_tokens)
    largest: int | None = None  # of the vocabulary, when it is needed
    for entry, number in config_tokens:
        content = str(entry["content"])
        if content in known_tokens:
            if number is not None and known_tokens[content] != number:
                raise ModelError(
                    f"{CONFIG}: added_tokens_decoder: token {content[:80]!r} has the id {number}, and "
                    f"{known_tokens[content]} in {file}"
                )
            continue
        if number is None:
            number = vocabulary.get(content)
        if number is None:
            largest = _largest_id(vocabulary.values()) if largest is None else largest
            number = max(largest, _largest_id(known_tokens.values())) + 1
        flags = {flag: entry.get(flag, False) for flag in _FLAGS}
        flags["normalized"] = entry.get("normalized", not flags["special"])
        out.append({"id": number, "content": content, **flags})
        known_tokens[content] = number
    return {**data, "added_tokens": out}


def _largest_id(numbers: Iterable[Any]) -> int:
    return max((x for x in numbers if isinstance(x, int)), default=-1)


def _vocabulary(data: dict[str, Any]) -> dict[str, int]:
    """The vocabulary of a model that is not checked yet."""
    model = data.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, dict):
        return vocabulary
    pairs = vocabulary if isinstance(vocabulary, list) else []
    return {
        pair[0]: i
        for i, pair in enumerate(pairs)
        if isinstance(pair, list) and pair and isinstance(pair[0], str)
    }


def _with_ends(
    data: dict[str, Any], config: dict[str, Any], special: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """`data` with the tokens at both ends that `add_bos_token` and `add_eos_token` ask for."""
    if "add_bos_token" not in config and "add_eos_token" not in config:
        return data
    ids = {**_vocabulary(data), **{entry["content"]: entry["id"] for entry in data["added_tokens"]}}
    begin = (
        special["bos_token"]["content"] if config.get("add_bos_token") and "bos_token" in special else None
    )
    end = special["eos_token"]["content"] if config.get("add_eos_token") and "eos_token" in special else None
    return {**data, "post_processor": ends_template(begin, end, ids)}


def ends_template(begin: str | None, end: str | None, ids: Mapping[str, int]) -> dict[str, Any]:
    """The post-processor that puts tokens at the ends of each text."""

    def one(sequence: str, type_id: int) -> list[dict[str, Any]]:
        token = [{"SpecialToken": {"id": x, "type_id": type_id}} if x else None for x in (begin, end)]
        pieces = [token[0], {"Sequence": {"id": sequence, "type_id": type_id}}, token[1]]
        return [piece for piece in pieces if piece]

    tokens = {x: {"id": x, "ids": [ids.get(x)], "tokens": [x]} for x in (begin, end) if x}
    return {
        "type": "TemplateProcessing",
        "single": one("A", 0),
        "pair": [*one("A", 0), *one("B", 1)],
        "special_tokens": tokens,
    }


def _templates(config: dict[str, Any]) -> dict[str, str]:
    value = config.get("chat_template")
    if value is None:
        return {}
    if isinstance(value, str):
        return {"default": value}
    pairs = value if isinstance(value, list) else [None]
    out = {}
    for i, pair in enumerate(pairs):
        name, text = (pair.get("name"), pair.get("template")) if isinstance(pair, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(text, str):
            raise ModelError(
                f"{CONFIG}: chat_template[{i}]: expected a name and a template, got {pair!r:.80}"
            )
        out[name] = text
    return out


def _padding_side(config: dict[str, Any]) -> str:
    side = config.get("padding_side", "right")
    if side not in ("left", "right"):
        raise ModelError(f"{CONFIG}: padding_side: expected left or right, got {side!r:.80}")
    return str(side)


def _end_ids(files: Mapping[str, bytes]) -> tuple[int, ...]:
    """The ids in generation_config.json that end a text."""
    value = parse_object(files[GENERATION], GENERATION).get("eos_token_id") if GENERATION in files else None
    numbers = value if isinstance(value, list) else [] if value is None else [value]
    for number in numbers:
        if type(number) is not int or number < 0:
            raise ModelError(f"{GENERATION}: eos_token_id: expected ids, got {value!r:.80}")
    return tuple(numbers)
