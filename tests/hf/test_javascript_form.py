"""What is sent to JavaScript's tokenizers: classes of characters, what is refused, and added tokens in the
text.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
import tokenizers
from hf_tokenizers import strings, trained
from tokenizers import AddedToken, normalizers, pre_tokenizers

from polygrad.errors import ModelError
from polygrad.hf import Tokenizer
from polygrad.hf.added_tokens import SectionedBackend
from polygrad.hf.character_classes import CLEANED, COMBINING_MARKS, NONSPACING_MARKS, PUNCTUATION
from polygrad.hf.javascript_form import javascript_form
from polygrad.hf.tokenizer_json import check_tokenizer

_OFF = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
_CLEAN = normalizers.BertNormalizer(**{**_OFF, "clean_text": True})
_ACCENTS = normalizers.BertNormalizer(**{**_OFF, "strip_accents": True})
_PUNCTUATION = pre_tokenizers.Punctuation()


@pytest.mark.parametrize(
    ("intervals", "is_in"),
    [
        (CLEANED, lambda c: _CLEAN.normalize_str(c) == ""),
        (NONSPACING_MARKS, lambda c: _ACCENTS.normalize_str(c) == ""),
        (COMBINING_MARKS, lambda c: normalizers.StripAccents().normalize_str(c) == ""),
        (PUNCTUATION, lambda c: len(_PUNCTUATION.pre_tokenize_str(f"a{c}b")) == 3),
    ],
)
def test_a_class_of_characters_is_the_packages(intervals: str, is_in: Callable[[str], bool]) -> None:
    members: set[int] = set()
    for interval in intervals.split():
        first, _, last = interval.partition("-")
        members.update(range(int(first, 16), int(last or first, 16) + 1))
    # All planes that have letters and marks, and the beginnings of the others.
    for code in [*range(0x20000), *range(0x20000, 0x110000, 97), *range(0xE0000, 0xE0200)]:
        if not 0xD800 <= code < 0xE000:
            assert (code in members) == is_in(chr(code)), hex(code)


BPE = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}
SPLIT = {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"normalizer": {"type": "Nmt"}}, "normalizer: the kind Nmt"),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "ByteLevel"}]}},
            r"normalizer.normalizers\[1\]: the kind ByteLevel",
        ),
        ({"pre_tokenizer": {"type": "UnicodeScripts"}}, "pre_tokenizer: the kind UnicodeScripts"),
        (
            {"pre_tokenizer": {**SPLIT, "behavior": "MergedWithNext"}},
            "pre_tokenizer.behavior: MergedWithNext",
        ),
        (
            {"pre_tokenizer": {**SPLIT, "behavior": "Removed", "pattern": {"Regex": "(a)"}}},
            "pre_tokenizer.pattern: a group that captures",
        ),
        ({"model": {**BPE, "dropout": 0.5}}, "model.dropout"),
        ({"model": {**BPE, "continuing_subword_prefix": "##"}}, "model.continuing_subword_prefix"),
        (
            {"model": {**BPE, "fuse_unk": True}, "pre_tokenizer": {"type": "Whitespace"}},
            "model.fuse_unk: true",
        ),
        ({"model": {"type": "Unigram", "vocab": [["a", 0]]}}, "model.unk_id"),
        (
            {"model": {"type": "Unigram", "vocab": [["a", 0]], "unk_id": 0, "byte_fallback": True}},
            "byte_fallback",
        ),
    ],
)
def test_what_the_library_cannot_do_is_refused_by_name(changes: dict[str, Any], match: str) -> None:
    checked = check_tokenizer({"model": BPE, **changes})
    with pytest.raises(ModelError, match=f"^tokenizer.json: .*{match}.* is not supported by the JavaScript"):
        javascript_form(checked, "tokenizer.json")


class _Package:
    """The package `tokenizers` as a library that knows no added tokens."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._made = tokenizers.Tokenizer.from_str(
            json.dumps({**data, "added_tokens": [], "normalizer": None})
        )
        self._normalizer = tokenizers.Tokenizer.from_str(json.dumps(data)).normalizer

    def normalize(self, text: str) -> str:
        return str(self._normalizer.normalize_str(text)) if self._normalizer else text

    def encode(self, text: str, first: bool) -> list[int]:
        return list(self._made.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "clip", "qwen2"])
def test_added_tokens_are_found_as_the_package_finds_them(kind: str) -> None:
    judge = tokenizers.Tokenizer.from_str(trained(kind)[0].backend_tokenizer.to_str())
    contents = ["<a>", "<a>b", "HÉ", "the", " x", "ab", "\u0301", "<|x|>"]
    flags: list[dict[str, bool]] = [
        {"normalized": False},
        {"normalized": False, "lstrip": True},
        {"normalized": True},
        {"normalized": True, "single_word": True},
        {"normalized": False, "rstrip": True},
        {"normalized": True, "lstrip": True, "rstrip": True},
        {"normalized": False, "single_word": True},
        {"normalized": False, "special": True, "lstrip": True, "rstrip": True},
    ]
    for content, flag in zip(contents, flags):
        judge.add_tokens([AddedToken(content, **flag)])
    data = json.loads(judge.to_str())
    backend = SectionedBackend(check_tokenizer(data).data["added_tokens"], _Package(data))
    for text in strings(1000, [*contents, "hé", "The", "xthex", "THE "], seed=12):
        assert backend.encode(text) == judge.encode(text, add_special_tokens=False).ids, repr(text)


@pytest.mark.parametrize(
    ("package", "needs"), [("tokenizers", "native_tokenizers"), ("jinja2", "native_templates")]
)
def test_without_its_package_the_error_says_what_to_install(
    package: str, needs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = trained("gpt2")[1]
    tokenizer = Tokenizer(folder)
    importlib.import_module(f"polygrad.hf.{needs}")
    monkeypatch.delitem(sys.modules, f"polygrad.hf.{needs}")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ModelError, match=rf"expected the package '{package}', .*pip install 'polygrad\[hf\]'"
    ):
        Tokenizer(folder)
        tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], template="{{ 1 }}")
