"""Tokenizer files that are damaged, contradict themselves, or are made to hang: an error that names file and
entry.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hf_tokenizers import KINDS, trained

from polygrad.errors import ArgumentError, ModelError
from polygrad.hf import Tokenizer
from polygrad.hf.patterns import check_pattern
from polygrad.hf.split_patterns import NAMES, byte_level_steps

GOOD: dict[str, Any] = {
    "version": "1.0",
    "added_tokens": [{"id": 3, "content": "<s>", "special": True}],
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}},
    },
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
}


def _raw(data: Any) -> dict[str, bytes]:
    return {"tokenizer.json": json.dumps(data).encode()}


def _changed(path: str, value: Any) -> Any:
    """GOOD with another value at a dotted path."""
    data = copy.deepcopy(GOOD)
    *way, last = path.split(".")
    place: Any = data
    for name in way:
        place = place[int(name)] if isinstance(place, list) else place[name]
    place[int(last) if isinstance(place, list) else last] = value
    return data


def test_the_good_one_is_good() -> None:
    tokenizer = Tokenizer(_raw(GOOD))
    assert tokenizer.encode("ab b") == [3, 2, 1] and tokenizer.size == 4


SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        ("model", None, "model: expected an object, got NoneType"),
        (
            "model.type",
            "Magic",
            "model.type: expected one of BPE, Unigram, WordLevel, WordPiece, got 'Magic'",
        ),
        ("model.vocab", [1], "model.vocab: expected an object, got list"),
        ("model.vocab.b", 0, "model.vocab: tokens 'a' and 'b' have the same id, 0"),
        ("model.vocab.b", -1, "model.vocab: token 'b': expected an id from 0 to 2147483647, got -1"),
        ("model.vocab.b", 1.5, "model.vocab: token 'b': expected an id"),
        ("model.vocab.b", True, "model.vocab: token 'b': expected an id"),
        ("model.vocab.b", 1 << 40, "model.vocab: token 'b': expected an id"),
        ("model.merges", "a b", "model.merges: expected a list, got str"),
        ("model.merges.0", "a", r"model.merges\[0\]: expected two tokens, got 'a'"),
        ("model.merges.0", ["a", 1], r"model.merges\[0\]: expected two tokens"),
        ("model.merges.0", ["a", "c"], r"model.merges\[0\]: token 'c' is not in the vocabulary"),
        ("model.merges.0", ["b", "a"], r"model.merges\[0\]: token 'ba' is not in the vocabulary"),
        ("added_tokens", {}, None),
        ("added_tokens", "x", "added_tokens: expected a list, got str"),
        ("added_tokens.0.content", "", r"added_tokens\[0\]: expected an object with content and id"),
        (
            "added_tokens.0.content",
            "a",
            r"added_tokens\[0\]: token 'a' has the id 3, and 0 in the vocabulary",
        ),
        ("added_tokens.0.id", 1, r"added_tokens\[0\]: tokens 'b' and '<s>' have the id 1"),
        ("added_tokens.0.id", "3", r"added_tokens\[0\]: token '<s>': expected an id"),
        ("added_tokens.0.lstrip", 1, r"added_tokens\[0\].lstrip: expected true or false, got 1"),
        ("added_tokens", GOOD["added_tokens"] * 2, r"added_tokens\[1\]: token '<s>' is there twice"),
        ("normalizer", {"type": "Magic"}, "normalizer.type: expected one of .*, got 'Magic'"),
        ("normalizer", {"type": "Sequence"}, "normalizer.normalizers: expected a list, got NoneType"),
        (
            "normalizer",
            {"type": "Replace", "content": "x"},
            "normalizer.pattern: expected a Regex or a String",
        ),
        ("normalizer", {"type": "Precompiled"}, "normalizer.precompiled_charsmap: expected base64, got None"),
        (
            "normalizer",
            {"type": "Precompiled", "precompiled_charsmap": "CAAAAAAAAAA="},
            "normalizer.precompiled_charsmap: expected a trie of 8 bytes and texts, got 8 bytes",
        ),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "(a"}}, "pre_tokenizer.pattern: .* does not close"),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "[a"}}, "pre_tokenizer.pattern: .* does not end"),
        (
            "pre_tokenizer",
            {**SPLIT, "pattern": {"Regex": "\\p{Nothing}"}},
            "refused by the package tokenizers",
        ),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "(a+)+b"}}, "can take exponential time"),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "(a|aa)*b"}}, "can take exponential time"),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "((a?){9}x*)+"}}, "can take exponential time"),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "a?" * 30 + "a" * 30}}, "can take exponential time"),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "(?:a?){30}a{30}"}}, "can take exponential time"),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "a*a*a*a*a*b"}}, "can take exponential time"),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "(a)\\1"}}, "refers to a group"),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "a{5000}"}}, "repeats 5000 times"),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "(?R)"}}, "a kind of group that is not read"),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "a" * 30_000}}, "a pattern of 30000 characters"),
        ("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "(" * 200 + ")" * 200}}, "more than 100 groups"),
        ("post_processor.special_tokens.<s>.ids", [9], "token '<s>' has the id 9, and 3 in the vocabulary"),
        ("post_processor.special_tokens.<s>.ids", [], "post_processor.special_tokens: '<s>': expected ids"),
        (
            "post_processor.single.0",
            {"SpecialToken": {"id": "</s>"}},
            r"post_processor.single\[0\]: expected a",
        ),
        ("post_processor.single.1", {"Sequence": {"id": "B"}}, r"post_processor.single\[1\]: expected a"),
        ("post_processor.single.1", {"Sequence": 3}, r"post_processor.single\[1\]: expected a"),
        (
            "post_processor",
            {"type": "BertProcessing", "sep": ["<s>", 3]},
            "post_processor.cls: expected a token",
        ),
        ("decoder", {"type": "CTC"}, "decoder.type: expected one of .*, got 'CTC'"),
        (
            "decoder",
            {"type": "WordPiece", "prefix": 3, "cleanup": True},
            "decoder.prefix: expected str, got 3",
        ),
        (
            "decoder",
            {"type": "Strip", "content": "ab", "start": 0, "stop": 0},
            "decoder.content: expected one",
        ),
    ],
)
def test_an_entry_that_is_wrong_is_named(path: str, value: Any, match: str | None) -> None:
    if match is None:
        Tokenizer(_raw({**_changed(path, value), "post_processor": None}))
        return
    with pytest.raises(ModelError, match=f"^tokenizer.json: .*{match}|^tokenizer.json: {match}"):
        Tokenizer(_raw(_changed(path, value)))


@pytest.mark.parametrize(
    ("model", "match"),
    [
        ({"type": "Unigram", "vocab": []}, "model.vocab: expected pairs"),
        ({"type": "Unigram", "vocab": [["a"]]}, r"model.vocab\[0\]: expected a token and a finite score"),
        (
            {"type": "Unigram", "vocab": [["a", float("nan")]]},
            r"model.vocab\[0\]: expected a token and a finite",
        ),
        (
            {"type": "Unigram", "vocab": [["a", 0], ["a", 1]]},
            r"model.vocab\[1\]: token 'a' is there twice, first as 0",
        ),
        (
            {"type": "Unigram", "vocab": [["a", 0]], "unk_id": 1},
            "model.unk_id: expected an id below 1, got 1",
        ),
        (
            {"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "b"},
            "model.unk_token: 'b' is not in the vocabulary",
        ),
        ({"type": "WordLevel", "vocab": {"a": 0}}, "model.unk_token: None is not in the vocabulary"),
    ],
)
def test_other_models_are_checked_too(model: dict[str, Any], match: str) -> None:
    with pytest.raises(ModelError, match=f"^tokenizer.json: {match}"):
        Tokenizer(_raw({"model": model}))


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({"tokenizer.json": b"{"}, "tokenizer.json: expected JSON, which this is not"),
        ({"tokenizer.json": b"\xff{}"}, "tokenizer.json: expected JSON, which this is not"),
        ({"tokenizer.json": b"[]"}, "tokenizer.json: expected a JSON object, got list"),
        ({"tokenizer.json": b'{"model": 1, "model": 2}'}, "tokenizer.json: entry 'model' is there twice"),
        ({"tokenizer.json": b"[" * 100_000}, "tokenizer.json: arrays or objects too deep"),
        ({"tokenizer_config.json": b"3"}, "tokenizer_config.json: expected a JSON object, got int"),
        (
            {"tokenizer_config.json": b'{"eos_token": 3}'},
            "tokenizer_config.json: eos_token: expected a token, got 3",
        ),
        (
            {"tokenizer_config.json": b'{"padding_side": "up"}'},
            "padding_side: expected left or right, got 'up'",
        ),
        ({"tokenizer_config.json": b'{"chat_template": 3}'}, r"tokenizer_config.json: chat_template\[0\]"),
        (
            {"tokenizer_config.json": b'{"added_tokens_decoder": {"x": {"content": "y"}}}'},
            "tokenizer_config.json: added_tokens_decoder: 'x': expected a token",
        ),
        (
            {"tokenizer_config.json": b'{"added_tokens_decoder": {"9": {"content": "<s>"}}}'},
            "added_tokens_decoder: token '<s>' has the id 9, and 3 in tokenizer.json",
        ),
        (
            {"tokenizer_config.json": b'{"added_tokens_decoder": {"9": {"content": "gap"}}}'},
            "added token 'gap' has the id 9, the package tokenizers gives it 4: expected ids without gaps",
        ),
        (
            {"tokenizer_config.json": b'{"extra_special_tokens": [3]}'},
            "extra_special_tokens: expected a token",
        ),
        (
            {"generation_config.json": b'{"eos_token_id": "x"}'},
            "generation_config.json: eos_token_id: expected ids",
        ),
        ({"chat_template.jinja": b"\xff"}, "chat_template.jinja: expected UTF-8, which byte 0 is not"),
    ],
)
def test_files_that_are_wrong_are_named(files: dict[str, bytes], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        Tokenizer({**_raw(GOOD), **files})


def test_a_lone_surrogate_in_a_vocabulary_is_refused() -> None:
    raw = json.dumps(_changed("model.vocab", {"a": 0, "b": 1, "ab": 2, "\ud800": 4})).encode()
    with pytest.raises(ModelError, match=r"^tokenizer.json: a lone surrogate, '\\ud800', which is not text"):
        Tokenizer({"tokenizer.json": raw})


def test_a_panic_of_the_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern gives up on a text when it has tried too often; patterns that are known to are refused
    before.
    """
    monkeypatch.setattr("polygrad.hf.tokenizer_json.check_pattern", lambda pattern, where: None)
    tokenizer = Tokenizer(_raw(_changed("pre_tokenizer", {**SPLIT, "pattern": {"Regex": "(a+)+b"}})))
    with pytest.raises(
        ModelError, match=r"^tokenizer\.json: the package tokenizers failed on 'aaaa.*retry-limit"
    ):
        tokenizer.encode("a" * 30)


def test_a_library_that_is_opened_late_refuses_late() -> None:
    """Decoding needs no library; what a check of our own finds is refused at once."""
    lone = _raw(_changed("model.vocab", {"a": 0, "b": 1, "ab": 2, "\ud800": 4}))
    with pytest.raises(ModelError, match="a lone surrogate"):
        Tokenizer(lone)
    late = Tokenizer(lone, opens_library=False)
    assert late.decode([2, 0]) == "aba"
    with pytest.raises(ModelError, match="a lone surrogate"):
        late.encode("ab")
    with pytest.raises(ModelError, match="the model's embedding has 2 rows"):
        Tokenizer(lone, 2, opens_library=False)
    assert Tokenizer(_raw(GOOD), opens_library=False).encode("ab") == Tokenizer(_raw(GOOD)).encode("ab")


def test_what_is_no_source_is_refused(tmp_path: Any) -> None:
    with pytest.raises(ModelError, match=r"expected a folder with tokenizer\.json"):
        Tokenizer(tmp_path / "none")
    with pytest.raises(ModelError, match=r"expected tokenizer\.json, or vocab\.json"):
        Tokenizer(tmp_path)
    with pytest.raises(ArgumentError, match="expected bytes by the names of files"):
        Tokenizer({"tokenizer.json": "{}"})  # type: ignore[dict-item]


def test_a_file_cut_anywhere_is_an_error_that_names_it() -> None:
    raw = _raw(GOOD)["tokenizer.json"]
    for end in range(len(raw)):
        with pytest.raises(ModelError, match=r"^tokenizer\.json: "):
            Tokenizer({"tokenizer.json": raw[:end]})


def test_the_patterns_of_models_are_accepted() -> None:
    for name in NAMES:
        for step in [byte_level_steps(name)]:
            for part in (step or {}).get("pretokenizers", [step]):
                if "pattern" in part:
                    check_pattern(part["pattern"]["Regex"], name)
    for kind in KINDS:
        Tokenizer(trained(kind)[1])


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?:\d{3})+",
        r"[(+)]+",
        r"\(a+\)+",
        r"(?:ab)+",
        r"(?<=a+)?b",
        r"[[a-z]&&[^b]]+",
        r"(?i:'s|'t)?",
        r"a++b",
        "{a}",
    ],
)
def test_patterns_that_take_no_exponential_time_are_accepted(pattern: str) -> None:
    check_pattern(pattern, "here")
