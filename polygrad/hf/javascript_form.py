"""Rewrites a tokenizer.json so that `@huggingface/tokenizers` finds the same tokens as the package
`tokenizers`.

The JavaScript library has the same kinds of normalizers, pre-tokenizers and models, but several of them
behave differently: character classes are JavaScript's, the BERT normalizer treats surrogates as characters,
Metaspace does not split. Most can be expressed by exact parts: replacements and splits at regular
expressions. Others are an error here, by name, before anything is tokenized.
"""

from __future__ import annotations

import json
import re
from typing import Any

from polygrad.errors import ModelError
from polygrad.hf.character_classes import (
    CLEANED,
    COMBINING_MARKS,
    NONSPACING_MARKS,
    PUNCTUATION,
    character_class,
)
from polygrad.hf.tokenizer_json import TokenizerJson

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}"
_IDEOGRAPHS = (
    r"\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{f900}-\x{faff}\x{20000}-\x{2a6df}\x{2a700}-\x{2b81f}"
    r"\x{2b920}-\x{2ceaf}\x{2f800}-\x{2fa1f}"
)


def javascript_form(tokenizer: TokenizerJson, file: str) -> dict[str, Any]:
    """The data for the JavaScript library, without added tokens and without what comes after the model.

    Raises ModelError for what that library cannot do.
    """
    data = tokenizer.data
    splits = _pre_tokenizers(data["pre_tokenizer"], f"{file}: pre_tokenizer", False)
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": _sequence("normalizers", _normalizers(data["normalizer"], f"{file}: normalizer")),
        "pre_tokenizer": _sequence("pretokenizers", splits),
        "post_processor": None,
        "decoder": None,
        "model": _model(tokenizer, bool(splits), f"{file}: model"),
    }


def _unsupported_error(where: str, what: str) -> ModelError:
    return ModelError(f"{where}: {what} is not supported by the JavaScript libraries of a page")


def _sequence(name: str, parts: list[dict[str, Any]]) -> dict[str, Any] | None:
    return {"type": "Sequence", name: parts} if parts else None


# --- normalizers


def _replace(pattern: str, content: str) -> dict[str, Any]:
    """`content` may have JavaScript's `$&`."""
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


# JavaScript lowercases a sigma at the end of a word differently.
_LOWERCASE = [_replace("Σ", "σ"), {"type": "Lowercase"}]


def _normalizers(data: dict[str, Any] | None, where: str) -> list[dict[str, Any]]:
    if data is None:
        return []
    match data["type"]:
        case "Sequence":
            children = enumerate(data["normalizers"])
            return [x for i, child in children for x in _normalizers(child, f"{where}.normalizers[{i}]")]
        case "BertNormalizer":
            return _bert_normalizers(data)
        case "Lowercase":
            return _LOWERCASE
        case "StripAccents":
            return [_replace(f"[{character_class(COMBINING_MARKS)}]", "")]
        case "Strip":
            left = [_replace(r"\A\s+", "")] if data.get("strip_left", True) else []
            return [*left, *([_replace(r"\s+\z", "")] if data.get("strip_right", True) else [])]
        case "Replace":
            return [{**data, "content": data["content"].replace("$", "$$")}]
        case "Prepend":
            return [_replace(r"\A[\s\S]", data["prepend"].replace("$", "$$") + "$&")]
        case "NFC" | "NFD" | "NFKC" | "NFKD" | "Precompiled":
            return [data]
        case kind:
            raise _unsupported_error(where, f"the kind {kind}")


def _bert_normalizers(data: dict[str, Any]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    if data.get("clean_text", True):
        out += [_replace(f"[{character_class(CLEANED)}]", ""), _replace(r"\s", " ")]
    if data.get("handle_chinese_chars", True):
        out.append(_replace(f"[{_IDEOGRAPHS}]", " $& "))
    lowercase, accents = data.get("lowercase", True), data.get("strip_accents")
    if lowercase if accents is None else accents:
        out += [{"type": "NFD"}, _replace(f"[{character_class(NONSPACING_MARKS)}]", "")]
    return out + _LOWERCASE if lowercase else out


# --- pre-tokenizers


def _split(pattern: str, behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def _pre_tokenizers(data: dict[str, Any] | None, where: str, follows: bool) -> list[dict[str, Any]]:
    """`follows`: whether another comes before."""
    if data is None:
        return []
    match data["type"]:
        case "Sequence":
            out: list[dict[str, Any]] = []
            for i, child in enumerate(data["pretokenizers"]):
                out += _pre_tokenizers(child, f"{where}.pretokenizers[{i}]", follows or i > 0)
            return out
        case "ByteLevel":
            prefix = {"type": "Replace", "pattern": {"Regex": r"\A[^ ]"}, "content": " $&"}
            code = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
            steps = [prefix] if data.get("add_prefix_space", True) else []
            return [*steps, *([_split(_GPT2)] if data.get("use_regex", True) else []), code]
        case "BertPreTokenizer":
            return [_split(r"\s+", "Removed"), _split(f"[{character_class(PUNCTUATION)}]")]
        case "Whitespace":
            return [_split(rf"[{_WORD}]+|[^{_WORD}\s]+", "Removed", True)]
        case "WhitespaceSplit":
            return [_split(r"\s+", "Removed")]
        case "Punctuation":
            return [_with_behavior(f"[{character_class(PUNCTUATION)}]", data, where)]
        case "Digits":
            return [_split(r"\p{N}" if data.get("individual_digits") else r"\p{N}+")]
        case "CharDelimiterSplit":
            return [_split(_escape(data["delimiter"]), "Removed")]
        case "FixedLength":
            return [_split(rf"[\s\S]{{1,{data['length']}}}")]
        case "Metaspace":
            return _metaspace(data, where, follows)
        case "Split":
            return [_split_of(data, where)]
        case kind:
            raise _unsupported_error(where, f"the kind {kind}")


def _metaspace(data: dict[str, Any], where: str, follows: bool) -> list[dict[str, Any]]:
    mark = data.get("replacement", "▁")
    scheme = data.get("prepend_scheme", "always" if data.get("add_prefix_space", True) else "never")
    if scheme == "first" and follows:
        raise _unsupported_error(f"{where}.prepend_scheme", "first, after another pre-tokenizer,")
    pre_tokenizer = {"type": "Metaspace", "replacement": mark, "prepend_scheme": scheme, "split": False}
    return (
        [pre_tokenizer, _split(f"{_escape(mark)}[^{_escape(mark)}]*")]
        if data.get("split", True)
        else [pre_tokenizer]
    )


def _split_of(data: dict[str, Any], where: str) -> dict[str, Any]:
    [(kind, text)] = data["pattern"].items()
    if kind == "Regex":
        if (
            data.get("behavior") == "Removed"
            and not data.get("invert")
            and re.search(r"(?<!\\)\((?!\?)", text)
        ):
            raise _unsupported_error(f"{where}.pattern", "a group that captures, in what is removed,")
        return _with_behavior(text, data, where)
    behavior = data.get("behavior")
    if len(text) == 1 and behavior in ("MergedWithPrevious", "MergedWithNext") and not data.get("invert"):
        other = f"[^{_escape(text)}]*"
        before = behavior == "MergedWithPrevious"
        return _split(other + _escape(text) if before else _escape(text) + other)
    return _with_behavior(_escape(text), data, where)


def _with_behavior(pattern: str, data: dict[str, Any], where: str) -> dict[str, Any]:
    behavior, invert = data.get("behavior", "Isolated"), bool(data.get("invert"))
    if behavior == "Isolated":
        return _split(pattern)
    if behavior == "Contiguous" and not invert and pattern.startswith("["):
        return _split(f"{pattern}+")
    if behavior == "Removed":
        return _split(pattern, "Removed", invert)
    raise _unsupported_error(f"{where}.behavior", f"{behavior}{', inverted,' if invert else ''}")


def _escape(text: str) -> str:
    return "".join(f"\\x{{{ord(character):x}}}" for character in text)


# --- models


def _model(tokenizer: TokenizerJson, is_split: bool, where: str) -> dict[str, Any]:
    model = tokenizer.data["model"]
    if model["type"] == "Unigram":
        if model.get("byte_fallback"):
            raise _unsupported_error(f"{where}.byte_fallback", "true in a Unigram model")
        if model.get("unk_id") is None:
            raise _unsupported_error(f"{where}.unk_id", "a Unigram model without an unknown token")
        if is_split and not any(token == "▁" for token, _ in model["vocab"]):
            raise _unsupported_error(f"{where}.vocab", "a Unigram model of words without a token for a space")
    if model["type"] == "BPE":
        if model.get("dropout"):
            raise _unsupported_error(f"{where}.dropout", "a part of merges left out at random")
        if model.get("continuing_subword_prefix"):
            raise _unsupported_error(f"{where}.continuing_subword_prefix", "a prefix within words")
        merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
        vocabulary = model["vocab"]
        has_bytes = model.get("byte_fallback") and all(f"<0x{i:02X}>" in vocabulary for i in range(256))
        fuses = bool(model.get("fuse_unk")) and not has_bytes
        if fuses and is_split:
            raise _unsupported_error(f"{where}.fuse_unk", "true, of words,")
        return {**model, "merges": merges, "fuse_unk": fuses}
    return dict(model)


# --- variables of templates

_EXACT = 1 << 53


def variables_json(variables: dict[str, Any], where: str) -> str:
    """The variables of a chat template as JSON that means the same in JavaScript.

    Raises ModelError, which begins with `where`, for numbers that JavaScript writes otherwise, and for
    objects whose order it does not keep.
    """
    stack: list[Any] = [variables]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if any(name.isascii() and name.isdecimal() for name in value):
                raise _unsupported_error(where, f"an object with a number for a name, in {value!r:.80},")
            stack += value.values()
        elif isinstance(value, list):
            stack += value
        elif isinstance(value, float):
            if value.is_integer() or not 1e-4 <= abs(value) < 1e16:
                raise _unsupported_error(where, f"the float {value!r}")
        elif isinstance(value, int) and abs(value) >= _EXACT:
            raise _unsupported_error(where, f"the integer {value}")
    return json.dumps(variables, ensure_ascii=False, allow_nan=False)
