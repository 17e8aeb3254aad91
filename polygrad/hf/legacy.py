"""Folders without tokenizer.json: converts their vocabularies to the data of a tokenizer.json.

`vocab.json` with `merges.txt` (byte-level BPE: GPT-2, RoBERTa, Qwen, CLIP), `vocab.txt` (WordPiece: BERT),
and a sentencepiece model (`tokenizer.model`, `spiece.model`). `tokenizer_class` in tokenizer_config.json, or
the vocabulary itself, determines the pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polygrad.errors import ModelError
from polygrad.hf.sentencepiece import BPE, convert_sentencepiece, read_sentencepiece
from polygrad.hf.split_patterns import byte_level_steps
from polygrad.hf.tokenizer_json import parse_object

VOCABULARY, MERGES, WORDS = "vocab.json", "merges.txt", "vocab.txt"
SENTENCEPIECE = ("tokenizer.model", "spiece.model")
LEGACY_FILES = (VOCABULARY, MERGES, WORDS, *SENTENCEPIECE)
_CONFIG = "tokenizer_config.json"
# By the class in tokenizer_config.json without "Tokenizer" and "Fast": the tokens around a sentencepiece
# text.
_ENDS = {
    **dict.fromkeys(("Llama", "CodeLlama", "Gemma", "Mistral", "PreTrained"), ("bos_id", None)),
    "T5": (None, "eos_id"),
}
_BYTE_LEVEL: dict[str, Any] = {
    "type": "ByteLevel",
    "add_prefix_space": True,
    "trim_offsets": True,
    "use_regex": True,
}
_CLIP_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def convert_legacy(files: Mapping[str, bytes], config: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The file that the vocabulary is from, and its data in the form of tokenizer.json.

    `config`: tokenizer_config.json, to which the special tokens that these tokenizers have are added. Raises
    ModelError that names the file and the entry.
    """
    kind = str(config.get("tokenizer_class") or "").removesuffix("Fast").removesuffix("Tokenizer")
    if VOCABULARY in files and MERGES in files:
        return VOCABULARY, _byte_level(files, config, kind)
    if WORDS in files:
        return WORDS, _wordpiece(files[WORDS], config)
    for name in SENTENCEPIECE:
        if name in files:
            return name, _sentencepiece(files[name], name, config, kind)
    file_names = ", ".join(sorted(files)) or "no files"
    raise ModelError(
        f"Tokenizer: expected tokenizer.json, or {VOCABULARY} with {MERGES}, {WORDS}, "
        f"{' or '.join(SENTENCEPIECE)}, got {file_names}"
    )


def added_token(number: int, content: str, special: bool = True, lstrip: bool = False) -> dict[str, Any]:
    """An entry of `added_tokens`."""
    flags = {"single_word": False, "lstrip": lstrip, "rstrip": False, "normalized": False}
    return {"id": number, "content": content, **flags, "special": special}


def read_merges(lines: list[str], file: str) -> list[list[str]]:
    """Pairs of tokens, one a line. Raises ModelError."""
    out = []
    for i, line in enumerate(lines):
        if not line or (i == 0 and line.startswith("#version")):
            continue
        pair = line.split(" ")
        if len(pair) != 2 or not all(pair):
            raise ModelError(f"{file}: line {i + 1}: expected two tokens, got {line!r:.80}")
        out.append(pair)
    return out


def _lines(raw: bytes, file: str) -> list[str]:
    try:
        # A line ends at a line feed and at nothing else: other separators may be in tokens.
        return [line.removesuffix("\r") for line in bytes(raw).decode("utf-8").split("\n")]
    except UnicodeDecodeError as e:
        raise ModelError(f"{file}: expected UTF-8, which byte {e.start} is not") from None


# --- byte-level BPE


def _byte_level(files: Mapping[str, bytes], config: dict[str, Any], kind: str) -> dict[str, Any]:
    vocabulary = parse_object(files[VOCABULARY], VOCABULARY)
    merges = read_merges(_lines(files[MERGES], MERGES), MERGES)
    model: dict[str, Any] = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": vocabulary,
        "merges": merges,
    }
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "post_processor": None,
        "model": model,
    }
    tokenizer["decoder"] = _BYTE_LEVEL
    tokenizer["pre_tokenizer"] = {**_BYTE_LEVEL, "add_prefix_space": config.get("add_prefix_space") is True}
    if kind in ("Roberta", "Longformer") or (not kind and {"<s>", "</s>", "<mask>"} <= vocabulary.keys()):
        names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
        names |= {"cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}
        _name_tokens(tokenizer, config, names, vocabulary)
        tokenizer["post_processor"] = _bert_ends("RobertaProcessing", config, vocabulary)
    elif kind == "CLIP" or (not kind and any(token.endswith("</w>") for token in vocabulary)):
        _name_tokens(
            tokenizer, config, {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>"}, vocabulary
        )
        model["unk_token"], model["end_of_word_suffix"] = _content(config.get("eos_token")), "</w>"
        space: dict[str, Any] = {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}
        tokenizer["normalizer"] = {
            "type": "Sequence",
            "normalizers": [{"type": "NFC"}, space, {"type": "Lowercase"}],
        }
        split: dict[str, Any] = {
            "type": "Split",
            "pattern": {"Regex": _CLIP_PATTERN},
            "behavior": "Removed",
            "invert": True,
        }
        steps = [split, {**_BYTE_LEVEL, "add_prefix_space": False, "use_regex": False}]
        tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
        config = {**config, "cls_token": config["bos_token"], "sep_token": config["eos_token"]}
        tokenizer["post_processor"] = _bert_ends("RobertaProcessing", config, vocabulary)
    elif kind.startswith("Qwen"):
        tokenizer["normalizer"], tokenizer["pre_tokenizer"] = {"type": "NFC"}, byte_level_steps("qwen2")
        _name_tokens(tokenizer, config, {"eos_token": "<|endoftext|>"}, vocabulary)
    elif kind in ("", "GPT2", "PreTrained", "Whisper"):
        _name_tokens(
            tokenizer, config, {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}, vocabulary
        )
    else:
        raise ModelError(
            f"{_CONFIG}: tokenizer_class: expected GPT2, Roberta, CLIP, Qwen2 or Whisper for a {VOCABULARY}, "
            f"got {config['tokenizer_class']!r:.80}: save its tokenizer.json"
        )
    return tokenizer


def _name_tokens(
    tokenizer: dict[str, Any], config: dict[str, Any], names: Mapping[str, str], vocabulary: Mapping[str, Any]
) -> None:
    """Record in `config` the special tokens with these names, and make those in the vocabulary added
    tokens."""
    for name, content in names.items():
        if config.get(name) is None and content in vocabulary:
            config[name] = content
    known_tokens = {entry["content"] for entry in tokenizer["added_tokens"]}
    for name in ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"):
        content = _content(config.get(name))
        if content in vocabulary and content not in known_tokens:
            known_tokens.add(content)
            # RoBERTa's mask stands for a word and the space before it.
            strips = name == "mask_token" and tokenizer["decoder"] is _BYTE_LEVEL
            tokenizer["added_tokens"].append(added_token(vocabulary[content], content, lstrip=strips))


def _content(token: Any) -> str:
    return token.get("content", "") if isinstance(token, dict) else token if isinstance(token, str) else ""


def _bert_ends(kind: str, config: dict[str, Any], vocabulary: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"type": kind, "trim_offsets": True, "add_prefix_space": False}
    for name in ("cls", "sep"):
        content = _content(config.get(f"{name}_token"))
        if content not in vocabulary:
            raise ModelError(
                f"{VOCABULARY}: expected the {name} token {content!r}, which is not in the vocabulary"
            )
        out[name] = [content, vocabulary[content]]
    return out


# --- WordPiece


def _wordpiece(raw: bytes, config: dict[str, Any]) -> dict[str, Any]:
    words = _lines(raw, WORDS)
    while words and not words[-1]:
        words.pop()
    vocabulary: dict[str, int] = {}
    for i, word in enumerate(words):
        if word in vocabulary:
            raise ModelError(
                f"{WORDS}: line {i + 1}: token {word[:80]!r} is there twice, first as {vocabulary[word]}"
            )
        vocabulary[word] = i
    accents = config.get("strip_accents")
    lowercase = config.get("do_lower_case", True) is True
    return wordpiece_json(
        vocabulary, config, lowercase, accents if isinstance(accents, bool) else None, WORDS
    )


def wordpiece_json(
    vocabulary: dict[str, int], config: dict[str, Any], lowercase: bool, strip_accents: bool | None, file: str
) -> dict[str, Any]:
    """BERT's tokenizer over `vocabulary`; its special tokens are noted in `config`. Raises ModelError."""
    prefix = "##"
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": config.get("tokenize_chinese_chars", True) is True,
        "strip_accents": strip_accents,
        "lowercase": lowercase,
    }
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": prefix, "cleanup": True},
        "post_processor": None,
    }
    names = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]"}
    _name_tokens(tokenizer, config, {**names, "mask_token": "[MASK]"}, vocabulary)
    tokenizer["model"] = {
        "type": "WordPiece",
        "unk_token": _content(config.get("unk_token")),
        "continuing_subword_prefix": prefix,
        "max_input_chars_per_word": 100,
        "vocab": vocabulary,
    }
    cls, sep = (_content(config.get(name)) for name in ("cls_token", "sep_token"))
    for content in (cls, sep):
        if content not in vocabulary:
            raise ModelError(f"{file}: expected [CLS] and [SEP], got no token {content!r}")
    tokenizer["post_processor"] = bert_template(cls, sep, vocabulary)
    return tokenizer


def bert_template(cls: str, sep: str, vocabulary: Mapping[str, int]) -> dict[str, Any]:
    """[CLS] A [SEP] B [SEP], where B and the last [SEP] belong to the second text."""

    def token(content: str, type_id: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": content, "type_id": type_id}}

    first = [token(cls, 0), {"Sequence": {"id": "A", "type_id": 0}}, token(sep, 0)]
    return {
        "type": "TemplateProcessing",
        "single": first,
        "pair": [*first, {"Sequence": {"id": "B", "type_id": 1}}, token(sep, 1)],
        "special_tokens": {x: {"id": x, "ids": [vocabulary[x]], "tokens": [x]} for x in (cls, sep)},
    }


# --- sentencepiece


def _sentencepiece(raw: bytes, file: str, config: dict[str, Any], kind: str) -> dict[str, Any]:
    model = read_sentencepiece(raw, file)
    data = convert_sentencepiece(model, file)
    if kind and kind not in _ENDS:
        class_names = ", ".join(sorted(f"{name}Tokenizer" for name in _ENDS))
        raise ModelError(
            f"{_CONFIG}: tokenizer_class: expected one of {class_names} for a {file}, got "
            f"{config['tokenizer_class']!r:.80}: save its tokenizer.json"
        )
    begin, end = _ENDS[kind] if kind else (("bos_id", None) if model.model == BPE else (None, "eos_id"))
    for name, number in (
        ("unk", model.unk_id),
        ("bos", model.bos_id),
        ("eos", model.eos_id),
        ("pad", model.pad_id),
    ):
        if number >= 0 and config.get(f"{name}_token") is None:
            config[f"{name}_token"] = model.pieces[number].text
    if kind == "T5":
        _add_sentinels(data, config, len(model.pieces))
    config.setdefault("add_bos_token", bool(begin) and model.bos_id >= 0)
    config.setdefault("add_eos_token", bool(end) and model.eos_id >= 0)
    return data


def _add_sentinels(data: dict[str, Any], config: dict[str, Any], size: int) -> None:
    """T5's `<extra_id_0>` and so on are not pieces; they follow the pieces, in descending order."""
    count = config.get("extra_ids", 100)
    if type(count) is not int or not 0 <= count <= 1 << 16:
        raise ModelError(f"{_CONFIG}: extra_ids: expected a number of tokens, got {count!r:.80}")
    data["added_tokens"] += [added_token(size + i, f"<extra_id_{count - 1 - i}>") for i in range(count)]
