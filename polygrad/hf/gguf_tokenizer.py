"""The tokenizer in a GGUF file's metadata (`tokenizer.ggml.*`), in the form of tokenizer.json's data.

What the keys mean is in ggml's `docs/gguf.md`. Four models of tokenizer: `gpt2` is byte-level BPE, whose way
of cutting text into words goes by a name; `llama` is sentencepiece's BPE, whose merges follow from scores;
`bert` is WordPiece with a mark before words where BERT has one inside of them; `t5` is sentencepiece's
Unigram.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from polygrad.errors import ModelError
from polygrad.hf.legacy import added_token, read_merges, wordpiece_json
from polygrad.hf.sentencepiece import (
    BPE,
    BYTE,
    CONTROL,
    NORMAL,
    SPACE,
    UNIGRAM,
    UNKNOWN,
    USER_DEFINED,
    SentencePieceModel,
    VocabularyPiece,
    convert_sentencepiece,
)
from polygrad.hf.split_patterns import ADD_BEGIN, IGNORE_MERGES, NAMES, byte_level_steps
from polygrad.hf.tokenizer_files import TokenizerFiles, finish_tokenizer

FILE = "GGUF metadata"
_PREFIX = "tokenizer.ggml."
_CHAT = "tokenizer.chat_template"
_MODELS = ("bert", "gpt2", "llama", "t5")
_IDS = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
    "sep_token": "seperator_token_id",  # spelt so in the format
    "cls_token": "cls_token_id",
    "mask_token": "mask_token_id",
}
_ENDING = ("eot_token_id", "eom_token_id")


class _Metadata:
    """`tokenizer.ggml.*`, each entry checked when it is read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def get(self, name: str, kind: type | tuple[type, ...], default: Any) -> Any:
        value = self._values.get(_PREFIX + name)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(name, f"got {type(value).__name__}")
        return value

    def error(self, name: str, what: str) -> ModelError:
        return ModelError(f"{FILE}: {_PREFIX}{name}: {what}")

    def texts(self, name: str) -> list[str] | None:
        values = self.get(name, list, None)
        if values is not None and not {str}.issuperset(map(type, values)):
            raise self.error(name, "expected strings")
        return values  # type: ignore[no-any-return]

    def numbers(self, name: str, count: int, kinds: set[type]) -> list[Any] | None:
        values = self.get(name, list, None)
        if values is None:
            return None
        are_numbers = len(values) == count and kinds.issuperset(map(type, values))
        if not are_numbers or (float in kinds and not all(map(math.isfinite, values))):
            raise self.error(
                name, f"expected {count} finite numbers, as there are tokens, got {len(values)} values"
            )
        return values  # type: ignore[no-any-return]


def read_gguf_tokenizer(metadata: Mapping[str, Any]) -> TokenizerFiles:
    """By the metadata that `gguf_load` gives. Raises ModelError that names the entry."""
    entries = _Metadata(metadata)
    model = entries.get("model", str, None)
    if model not in _MODELS:
        raise entries.error("model", f"expected one of {', '.join(_MODELS)}, got {model!r}")
    tokens = entries.texts("tokens")
    if not tokens:
        raise entries.error("tokens", "expected a list of tokens, got none")
    last = dict(zip(tokens, range(len(tokens)), strict=True))
    if len(last) != len(tokens):
        other, i = next((i, last[token]) for i, token in enumerate(tokens) if last[token] != i)
        raise entries.error("tokens", f"{other} and {i} are both {tokens[i][:80]!r}")
    kinds = entries.numbers("token_type", len(tokens), {int}) or [NORMAL] * len(tokens)
    config = _config(entries, tokens)
    template = metadata.get(_CHAT)
    if template is not None:
        if not isinstance(template, str):
            raise ModelError(f"{FILE}: {_CHAT}: expected text, got {type(template).__name__}")
        config["chat_template"] = template
    if model == "gpt2":
        data = _byte_level(entries, tokens, kinds, config)
    elif model == "bert":
        data = _wordpiece(entries, tokens, config)
    else:
        data = _sentencepiece(entries, tokens, kinds, config, model)
    endings = tuple(
        number
        for name in _ENDING
        if (number := entries.get(name, int, None)) is not None and 0 <= number < len(tokens)
    )
    return finish_tokenizer(FILE, data, config, end_ids=endings)


def _config(entries: _Metadata, tokens: list[str]) -> dict[str, Any]:
    """What tokenizer_config.json would say."""
    config: dict[str, Any] = {}
    for name, key in _IDS.items():
        number = entries.get(key, int, None)
        if number is None:
            continue
        if not 0 <= number < len(tokens):
            raise entries.error(key, f"expected an id below {len(tokens)}, got {number}")
        config[name] = tokens[number]
    return config


def _set_ends(entries: _Metadata, config: dict[str, Any], begin: bool, end: bool) -> None:
    config["add_bos_token"] = entries.get("add_bos_token", bool, begin) and "bos_token" in config
    config["add_eos_token"] = entries.get("add_eos_token", bool, end) and "eos_token" in config


def _byte_level(
    entries: _Metadata, tokens: list[str], kinds: list[int], config: dict[str, Any]
) -> dict[str, Any]:
    name = entries.get("pre", str, "default")
    steps = byte_level_steps(name)
    if steps is None:
        raise entries.error("pre", f"expected one of {', '.join(NAMES)}, got {name!r}")
    merges = entries.texts("merges")
    if merges is None:
        raise entries.error("merges", "expected a list of merges, got none")
    _set_ends(entries, config, name in ADD_BEGIN, False)
    bytes_of_text = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": [
            added_token(i, tokens[i], special=kind != USER_DEFINED)
            for i, kind in enumerate(kinds)
            if kind != NORMAL and kind in (UNKNOWN, CONTROL, USER_DEFINED)
        ],
        "normalizer": {"type": "NFC"} if name in ("qwen2", "deepseek-r1-qwen") else None,
        "pre_tokenizer": steps,
        "decoder": bytes_of_text,
        "post_processor": None,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": name in IGNORE_MERGES,
            "vocab": dict(zip(tokens, range(len(tokens)), strict=True)),
            "merges": read_merges(merges, f"{FILE}: {_PREFIX}merges"),
        },
    }


def _wordpiece(entries: _Metadata, tokens: list[str], config: dict[str, Any]) -> dict[str, Any]:
    vocabulary: dict[str, int] = {}
    for i, token in enumerate(tokens):
        # A word begins with a mark there, and goes on with one here. Special tokens have neither.
        special = token.startswith("[") and token.endswith("]")
        word = token if special else token[1:] if token.startswith(SPACE) else f"##{token}"
        if word in vocabulary:
            raise entries.error("tokens", f"{vocabulary[word]} and {i} are both {word[:80]!r} in BERT's form")
        vocabulary[word] = i
    words = list(vocabulary)
    config.update({name: words[tokens.index(config[name])] for name in _IDS if name in config})
    if "cls_token" not in config and "bos_token" in config:
        config["cls_token"] = config.pop("bos_token")
    if "sep_token" not in config and "eos_token" in config:
        config["sep_token"] = config.pop("eos_token")
    letters = [word for word in vocabulary if not (word.startswith("[") and word.endswith("]"))]
    lowercase = not any(word != word.lower() for word in letters)
    return wordpiece_json(vocabulary, config, lowercase, None, FILE)


def _sentencepiece(
    entries: _Metadata, tokens: list[str], kinds: list[int], config: dict[str, Any], model: str
) -> dict[str, Any]:
    scores = entries.numbers("scores", len(tokens), {int, float})
    if scores is None:
        raise entries.error("scores", "expected a score for each token, got none")
    charsmap = entries.get("precompiled_charsmap", list, [])
    try:
        charsmap = bytes(x & 0xFF for x in charsmap)  # int8 or uint8
    except TypeError:
        raise entries.error("precompiled_charsmap", "expected bytes") from None
    unknown_ids = [i for i, kind in enumerate(kinds) if kind == UNKNOWN]
    pieces = SentencePieceModel(
        tuple(VocabularyPiece(*piece) for piece in zip(tokens, map(float, scores), kinds, strict=True)),
        UNIGRAM if model == "t5" else BPE,
        entries.get("unknown_token_id", int, unknown_ids[0] if unknown_ids else 0),
        entries.get("bos_token_id", int, -1),
        entries.get("eos_token_id", int, -1),
        entries.get("padding_token_id", int, -1),
        entries.get("add_space_prefix", bool, True),
        entries.get("remove_extra_whitespaces", bool, model == "t5"),
        charsmap,
    )
    if model == "llama" and BYTE not in kinds and not unknown_ids:
        raise entries.error("token_type", "expected tokens of bytes or an unknown token, got neither")
    _set_ends(entries, config, model == "llama", model == "t5")
    return convert_sentencepiece(pieces, FILE)
