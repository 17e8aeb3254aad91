"""A tokenizer.json that has been checked: its vocabulary, added tokens, and the parts of its pipeline as
data.

A tokenizer file is untrusted. Its types, ids, merges and patterns are checked here, once, before a library or
another part of this package sees them. No other code validates.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from polygrad.errors import ModelError
from polygrad.hf.patterns import check_pattern

FILE = "tokenizer.json"
MODELS = ("BPE", "Unigram", "WordLevel", "WordPiece")
NORMALIZERS = (
    *(
        "BertNormalizer",
        "ByteLevel",
        "Lowercase",
        "NFC",
        "NFD",
        "NFKC",
        "NFKD",
        "Nmt",
        "Precompiled",
        "Prepend",
    ),
    *("Replace", "Sequence", "Strip", "StripAccents"),
)
PRE_TOKENIZERS = (
    *(
        "BertPreTokenizer",
        "ByteLevel",
        "CharDelimiterSplit",
        "Digits",
        "FixedLength",
        "Metaspace",
        "Punctuation",
    ),
    *("Sequence", "Split", "UnicodeScripts", "Whitespace", "WhitespaceSplit"),
)
POST_PROCESSORS = ("BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing")
DECODERS = (
    *(
        "BPEDecoder",
        "ByteFallback",
        "ByteLevel",
        "Fuse",
        "Metaspace",
        "Replace",
        "Sequence",
        "Strip",
        "WordPiece",
    ),
)
_CHILDREN = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}
_KINDS = {
    "normalizer": NORMALIZERS,
    "pre_tokenizer": PRE_TOKENIZERS,
    "post_processor": POST_PROCESSORS,
    "decoder": DECODERS,
}
_LARGEST_ID = 1 << 31
_MAX_DEPTH = 16
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token that is found in the text before anything else looks at it."""

    content: str
    special: bool


@dataclass(frozen=True, slots=True)
class TokenizerJson:
    """`data`: the whole file. `ids` and `tokens` are the vocabulary with the added tokens."""

    data: dict[str, Any]
    ids: dict[str, int]
    tokens: dict[int, str]
    added: dict[str, AddedToken] = field(default_factory=dict)

    @property
    def model(self) -> str:
        return str(self.data["model"]["type"])


def parse_json(raw: bytes, file: str) -> Any:
    """The JSON in `raw`. Raises ModelError when it is damaged, or has an entry twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) != len(pairs):
            keys: set[str] = set()
            for name, _ in pairs:
                if name in keys:
                    raise ModelError(f"{file}: entry {name[:80]!r} is there twice")
                keys.add(name)
        return out

    try:
        return json.loads(bytes(raw).decode("utf-8-sig"), object_pairs_hook=unique)
    except ModelError:
        raise
    except ValueError as e:  # also of a number of thousands of digits
        raise ModelError(f"{file}: expected JSON, which this is not: {e}") from None
    except RecursionError:
        raise ModelError(f"{file}: arrays or objects too deep in one another") from None


def parse_object(raw: bytes, file: str) -> dict[str, Any]:
    """As `parse_json`, of an object."""
    data = parse_json(raw, file)
    if not isinstance(data, dict):
        raise ModelError(f"{file}: expected a JSON object, got {type(data).__name__}")
    return data


def check_tokenizer(data: Mapping[str, Any], file: str = FILE) -> TokenizerJson:
    """The checked contents of a tokenizer.json. Raises ModelError that names `file` and the entry."""
    model = data.get("model")
    if not isinstance(model, dict):
        raise ModelError(f"{file}: model: expected an object, got {type(model).__name__}")
    kind = model.get("type") or _kind_of(model)
    if kind not in MODELS:
        raise ModelError(f"{file}: model.type: expected one of {', '.join(MODELS)}, got {kind!r}")
    ids = _unigram_vocabulary(model, file) if kind == "Unigram" else _vocabulary(model, file)
    if kind == "BPE":
        _check_merges(model, ids, file)
    if kind in ("WordPiece", "WordLevel") and model.get("unk_token") not in ids:
        raise ModelError(f"{file}: model.unk_token: {model.get('unk_token')!r} is not in the vocabulary")
    tokens = dict(zip(ids.values(), ids, strict=True))
    added_tokens = _added_tokens(data.get("added_tokens") or [], ids, tokens, file)
    for part in _CHILDREN:
        if data.get(part) is not None:
            _check_part(part, data[part], f"{file}: {part}", ids, 0)
    checked = {**data, "model": {**model, "type": kind}, "truncation": None, "padding": None}
    checked = {
        name: checked.get(name)
        for name in ("version", "truncation", "padding", "added_tokens", *_CHILDREN, "model")
    }
    # The package `tokenizers` numbers added tokens in the order of the list.
    checked["version"] = "1.0"
    checked["added_tokens"] = sorted(
        map(_with_defaults, checked["added_tokens"] or []), key=lambda entry: int(entry["id"])
    )
    return TokenizerJson(checked, ids, tokens, added_tokens)


def _kind_of(model: dict[str, Any]) -> str | None:
    """The kind of a model in an old file that does not name it."""
    if isinstance(model.get("vocab"), list):
        return "Unigram"
    return "BPE" if "merges" in model else "WordPiece" if "continuing_subword_prefix" in model else None


# --- the vocabulary


def _vocabulary(model: dict[str, Any], file: str) -> dict[str, int]:
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict):
        raise ModelError(f"{file}: model.vocab: expected an object, got {type(vocabulary).__name__}")
    numbers = vocabulary.values()
    is_good = {int}.issuperset(map(type, numbers)) and len(set(numbers)) == len(vocabulary)
    if is_good and min(numbers, default=0) >= 0 and max(numbers, default=0) < _LARGEST_ID:
        return dict(vocabulary)
    owners: dict[int, str] = {}
    for token, number in vocabulary.items():  # raises for the wrong entry
        _check_id(number, f"{file}: model.vocab: token {token[:80]!r}")
        if (other := owners.setdefault(number, token)) != token:
            raise ModelError(
                f"{file}: model.vocab: tokens {other[:80]!r} and {token[:80]!r} have the same id, {number}"
            )
    return dict(vocabulary)


def _unigram_vocabulary(model: dict[str, Any], file: str) -> dict[str, int]:
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, list) or not vocabulary:
        raise ModelError(f"{file}: model.vocab: expected pairs of a token and its score")
    ids: dict[str, int] = {}
    for number, pair in enumerate(vocabulary):
        token, score = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
        if not isinstance(token, str) or not isinstance(score, (int, float)) or not math.isfinite(score):
            raise ModelError(
                f"{file}: model.vocab[{number}]: expected a token and a finite score, got {pair!r:.80}"
            )
        if token in ids:
            raise ModelError(
                f"{file}: model.vocab[{number}]: token {token[:80]!r} is there twice, first as {ids[token]}"
            )
        ids[token] = number
    unknown_id = model.get("unk_id")
    if unknown_id is not None and not (type(unknown_id) is int and 0 <= unknown_id < len(ids)):
        raise ModelError(f"{file}: model.unk_id: expected an id below {len(ids)}, got {unknown_id!r}")
    return ids


def _check_id(number: Any, where: str) -> int:
    if type(number) is not int or not 0 <= number < _LARGEST_ID:
        raise ModelError(f"{where}: expected an id from 0 to {_LARGEST_ID - 1}, got {number!r:.80}")
    return number  # type: ignore[no-any-return]


def _check_merges(model: dict[str, Any], ids: dict[str, int], file: str) -> None:
    merges = model.get("merges")
    if not isinstance(merges, list):
        raise ModelError(f"{file}: model.merges: expected a list, got {type(merges).__name__}")
    prefix = model.get("continuing_subword_prefix") or ""
    for i, merge in enumerate(merges):
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(x, str) for x in pair):
            raise ModelError(f"{file}: model.merges[{i}]: expected two tokens, got {merge!r:.80}")
        left, right = pair
        merged_token = left + (right.removeprefix(prefix) if prefix else right)
        for token in (left, right, merged_token):
            if token not in ids:
                raise ModelError(f"{file}: model.merges[{i}]: token {token[:80]!r} is not in the vocabulary")


def _added_tokens(
    entries: Any, ids: dict[str, int], tokens: dict[int, str], file: str
) -> dict[str, AddedToken]:
    """The added tokens, which also go into `ids` and `tokens`."""
    if not isinstance(entries, list):
        raise ModelError(f"{file}: added_tokens: expected a list, got {type(entries).__name__}")
    added_tokens: dict[str, AddedToken] = {}
    for i, entry in enumerate(entries):
        where = f"{file}: added_tokens[{i}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or not entry["content"]:
            raise ModelError(f"{where}: expected an object with content and id, got {entry!r:.80}")
        content, number = entry["content"], entry.get("id")
        number = _check_id(number, f"{where}: token {content[:80]!r}")
        for flag in _FLAGS:
            if not isinstance(entry.get(flag, False), bool):
                raise ModelError(f"{where}.{flag}: expected true or false, got {entry[flag]!r:.80}")
        if content in added_tokens:
            raise ModelError(f"{where}: token {content[:80]!r} is there twice")
        if ids.get(content, number) != number:
            raise ModelError(
                f"{where}: token {content[:80]!r} has the id {number}, and {ids[content]} in the vocabulary"
            )
        if tokens.get(number, content) != content:
            raise ModelError(
                f"{where}: tokens {tokens[number][:80]!r} and {content[:80]!r} have the id {number}"
            )
        ids[content], tokens[number] = number, content
        added_tokens[content] = AddedToken(content, bool(entry.get("special")))
    return added_tokens


def _with_defaults(entry: dict[str, Any]) -> dict[str, Any]:
    """An added token with all of its flags."""
    defaults = {**dict.fromkeys(_FLAGS, False), "normalized": not entry.get("special", False)}
    return {**defaults, **entry}


# --- the pipeline


def _check_part(part: str, data: Any, where: str, ids: dict[str, int], depth: int) -> None:
    """A normalizer, pre-tokenizer, post-processor or decoder, and those inside of it."""
    kind = data.get("type") if isinstance(data, dict) else None
    if kind not in _KINDS[part]:
        raise ModelError(f"{where}.type: expected one of {', '.join(_KINDS[part])}, got {kind!r:.80}")
    if depth > _MAX_DEPTH:
        raise ModelError(f"{where}: more than {_MAX_DEPTH} sequences in one another")
    if kind == "Sequence":
        children = data.get(_CHILDREN[part])
        if not isinstance(children, list):
            raise ModelError(f"{where}.{_CHILDREN[part]}: expected a list, got {type(children).__name__}")
        for i, child in enumerate(children):
            _check_part(part, child, f"{where}.{_CHILDREN[part]}[{i}]", ids, depth + 1)
    if "pattern" in data or kind in ("Replace", "Split"):
        _check_pattern_of(data.get("pattern"), f"{where}.pattern")
    if kind == "Precompiled":
        _check_charsmap(data.get("precompiled_charsmap"), f"{where}.precompiled_charsmap")
    if part == "decoder":
        _check_decoder(kind, data, where)
    if part == "post_processor":
        _check_post_processor(kind, data, where, ids)


def _check_pattern_of(pattern: Any, where: str) -> None:
    if not isinstance(pattern, dict) or len(pattern) != 1 or not {"Regex", "String"}.issuperset(pattern):
        raise ModelError(f"{where}: expected a Regex or a String, got {pattern!r:.80}")
    [(kind, text)] = pattern.items()
    if not isinstance(text, str) or not text:
        raise ModelError(f"{where}.{kind}: expected text, got {text!r:.80}")
    if kind == "Regex":
        check_pattern(text, where)


def _check_charsmap(text: Any, where: str) -> None:
    """Sentencepiece's table: a length, as many bytes of a trie, and texts."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (TypeError, ValueError):
        raise ModelError(f"{where}: expected base64, got {text!r:.80}") from None
    size = int.from_bytes(raw[:4], "little")
    if len(raw) < 8 or size % 4 or 4 + size > len(raw):
        raise ModelError(f"{where}: expected a trie of {size} bytes and texts, got {len(raw)} bytes")


_DECODER_ENTRIES: dict[str, dict[str, type]] = {
    "BPEDecoder": {"suffix": str},
    "Metaspace": {"replacement": str},
    "Replace": {"content": str},
    "Strip": {"content": str, "start": int, "stop": int},
    "WordPiece": {"prefix": str, "cleanup": bool},
}


def _check_decoder(kind: str, data: dict[str, Any], where: str) -> None:
    for name, required_type in _DECODER_ENTRIES.get(kind, {}).items():
        if not isinstance(data.get(name), required_type) or (required_type is int and data[name] < 0):
            raise ModelError(f"{where}.{name}: expected {required_type.__name__}, got {data.get(name)!r:.80}")
    if kind in ("Metaspace", "Strip"):
        name = "replacement" if kind == "Metaspace" else "content"
        if len(data[name]) != 1:
            raise ModelError(f"{where}.{name}: expected one character, got {data[name]!r:.80}")
    if kind == "Replace" and "String" not in data["pattern"]:
        raise ModelError(f"{where}.pattern: expected a String in a decoder, got a Regex")


def _check_post_processor(kind: str, data: dict[str, Any], where: str, ids: dict[str, int]) -> None:
    if kind in ("BertProcessing", "RobertaProcessing"):
        for name in ("sep", "cls"):
            pair = data.get(name)
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
                raise ModelError(f"{where}.{name}: expected a token and its id, got {pair!r:.80}")
            _check_known(pair[0], [pair[1]], f"{where}.{name}", ids)
    if kind == "TemplateProcessing":
        special = data.get("special_tokens")
        if not isinstance(special, dict):
            raise ModelError(f"{where}.special_tokens: expected an object, got {type(special).__name__}")
        for name, entry in special.items():
            numbers = entry.get("ids") if isinstance(entry, dict) else None
            if not isinstance(numbers, list) or not numbers:
                raise ModelError(f"{where}.special_tokens: {name[:80]!r}: expected ids, got {entry!r:.80}")
            _check_known(name, numbers, f"{where}.special_tokens", ids)
        for name in ("single", "pair"):
            _check_template(name, data.get(name), special, where)


def _check_known(token: str, numbers: list[Any], where: str, ids: dict[str, int]) -> None:
    known_ids = set(ids.values()) if len(numbers) > 1 else ()
    for number in numbers:
        if ids.get(token) != number and number not in known_ids:
            raise ModelError(
                f"{where}: token {token[:80]!r} has the id {number!r:.80}, and {ids.get(token)} "
                "in the vocabulary"
            )


def _check_template(name: str, template: Any, special: dict[str, Any], where: str) -> None:
    where = f"{where}.{name}"
    if not isinstance(template, list):
        raise ModelError(f"{where}: expected a list, got {type(template).__name__}")
    for i, item in enumerate(template):
        [(kind, value)] = item.items() if isinstance(item, dict) and len(item) == 1 else [(None, None)]
        entry: dict[str, Any] = value if isinstance(value, dict) else {}
        texts = ("A",) if name == "single" else ("A", "B")
        listed = special if kind == "SpecialToken" else texts if kind == "Sequence" else ()
        if entry.get("id") not in listed or type(entry.get("type_id", 0)) is not int:
            raise ModelError(
                f"{where}[{i}]: expected a sequence or a special token that is listed, got {item!r:.80}"
            )
