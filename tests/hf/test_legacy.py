"""Folders without tokenizer.json against the tokenizers that their files are of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hf_sentencepiece import model_file, pieces_of_bpe, pieces_of_unigram, sentencepiece_bpe
from hf_tokenizers import REPLACEMENTS, charsmap, special_tokens, strings, trained
from tokenizers import Regex, normalizers

from polygrad.errors import ModelError
from polygrad.hf import Tokenizer
from polygrad.hf.sentencepiece import BPE, UNIGRAM, UNKNOWN, VocabularyPiece, merges_by_score

COUNT = 500


def _files(folder: Path, judge: Any, config: dict[str, Any]) -> dict[str, bytes]:
    """The files of before tokenizer.json."""
    judge.backend_tokenizer.model.save(str(folder))
    names = ("vocab.json", "merges.txt", "vocab.txt")
    files = {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}
    return {**files, "tokenizer_config.json": json.dumps(config).encode()}


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("gpt2", {}),
        ("gpt2", {"tokenizer_class": "GPT2Tokenizer"}),
        ("roberta", {"add_prefix_space": True}),
        ("roberta", {"tokenizer_class": "RobertaTokenizerFast", "add_prefix_space": True}),
        ("clip", {"tokenizer_class": "CLIPTokenizer"}),
        ("bert", {}),
        ("bert", {"tokenizer_class": "BertTokenizer", "do_lower_case": True}),
        ("bert_cased", {"do_lower_case": False, "clean_up_tokenization_spaces": True}),
    ],
)
def test_a_vocabulary_of_text_files_is_the_same_tokenizer(
    kind: str, config: dict[str, Any], tmp_path: Path
) -> None:
    judge, _ = trained(kind)
    tokenizer = Tokenizer(_files(tmp_path, judge, config))
    assert (tokenizer.eos_ids or (None,))[0] == judge.eos_token_id
    for text in strings(COUNT, special_tokens(judge), seed=2):
        assert tokenizer.encode(text) == judge.encode(text), repr(text)
        assert tokenizer.decode(tokenizer.encode(text)) == judge.decode(
            judge.encode(text), skip_special_tokens=True
        )


def test_the_config_brings_added_tokens_and_a_class(tmp_path: Path) -> None:
    judge, folder = trained("qwen2")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    added = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    config["tokenizer_class"] = "Qwen2TokenizerFast"
    config["added_tokens_decoder"] = {str(x["id"]): {k: v for k, v in x.items() if k != "id"} for x in added}
    tokenizer = Tokenizer(_files(tmp_path, judge, config))
    for text in strings(COUNT, special_tokens(judge), seed=2):
        assert tokenizer.encode(text) == judge.encode(text), repr(text)


# --- sentencepiece


def test_a_unigram_model_is_the_same_tokenizer() -> None:
    judge, _ = trained("t5")
    plain = normalizers.Sequence(
        [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")]
    )
    old, judge.backend_tokenizer.normalizer = judge.backend_tokenizer.normalizer, plain
    raw = model_file(pieces_of_unigram(judge), UNIGRAM, 2, 0, 1)
    config = {"pad_token": "<pad>", "tokenizer_class": "T5Tokenizer", "extra_ids": 2}
    tokenizer = Tokenizer({"spiece.model": raw, "tokenizer_config.json": json.dumps(config).encode()})
    try:
        for text in strings(COUNT, special_tokens(judge), seed=3):
            assert tokenizer.encode(text) == judge.encode(text), repr(text)
            assert tokenizer.decode(tokenizer.encode(text), False) == judge.decode(judge.encode(text))
    finally:
        judge.backend_tokenizer.normalizer = old


def test_the_table_of_replacements_is_used() -> None:
    judge, _ = trained("xlm")
    raw = model_file(pieces_of_unigram(judge), UNIGRAM, 3, 0, 2, table=charsmap(REPLACEMENTS))
    tokenizer = Tokenizer({"spiece.model": raw})
    for text in strings(COUNT, special_tokens(judge), seed=3):
        assert tokenizer.encode(text, False) == judge.encode(text, add_special_tokens=False), repr(text)


def test_a_bpe_model_merges_as_sentencepiece_does() -> None:
    judge, _ = trained("llama2")
    pieces = pieces_of_bpe(judge)
    raw = model_file(pieces, BPE, 0, 1, 2)
    for config in ({}, {"tokenizer_class": "LlamaTokenizer"}):
        tokenizer = Tokenizer({"tokenizer.model": raw, "tokenizer_config.json": json.dumps(config).encode()})
        assert (tokenizer.bos_id, tokenizer.eos_ids) == (1, (2,))
        for text in strings(COUNT, ["the"], seed=4):
            if len(text) < 200:
                assert tokenizer.encode(text) == [1, *sentencepiece_bpe(text, pieces)], repr(text)
                assert tokenizer.decode(tokenizer.encode(text)) == text.replace("▁", " ")


def test_a_model_without_a_prefix_adds_none() -> None:
    pieces = pieces_of_bpe(trained("llama2")[0])
    raw = model_file(pieces, BPE, 0, 1, 2, prefix=False)
    tokenizer = Tokenizer(
        {"tokenizer.model": raw, "tokenizer_config.json": b'{"tokenizer_class": "GemmaTokenizer"}'}
    )
    for text in ("a", " a", "the quick", "  the"):
        assert tokenizer.encode(text)[1:] == sentencepiece_bpe(text, pieces, prefix="")
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_merges_are_in_the_order_of_scores() -> None:
    pieces = (
        VocabularyPiece("a", -9),
        VocabularyPiece("b", -9),
        VocabularyPiece("ab", -2),
        VocabularyPiece("aba", -1),
        VocabularyPiece("ba", -3),
    )
    assert merges_by_score(pieces) == [["a", "ba"], ["ab", "a"], ["a", "b"], ["b", "a"]]


GOOD = model_file(
    [VocabularyPiece("<unk>", 0.0, UNKNOWN), VocabularyPiece("a", -1.0), VocabularyPiece("b", -2.0)],
    UNIGRAM,
    0,
    0,
    0,
)


def test_a_model_cut_anywhere_is_an_error_or_a_smaller_model() -> None:
    for end in range(len(GOOD)):
        try:
            Tokenizer({"spiece.model": GOOD[:end]})
        except ModelError as e:
            assert "spiece.model" in str(e)


@pytest.mark.parametrize(
    ("pieces", "match"),
    [
        (
            [VocabularyPiece("<unk>", 0, UNKNOWN), VocabularyPiece("a", 0), VocabularyPiece("a", -1)],
            "pieces 1 and 2 are both 'a'",
        ),
        (
            [VocabularyPiece("<unk>", 0, UNKNOWN), VocabularyPiece("a", float("nan"))],
            "piece 1: expected text, a finite score",
        ),
        (
            [VocabularyPiece("<unk>", 0, UNKNOWN), VocabularyPiece("a", 0, 9)],
            "piece 1: expected text, a finite score",
        ),
        (
            [VocabularyPiece("<unk>", 0, UNKNOWN), VocabularyPiece("", 0)],
            "piece 1: expected text, a finite score",
        ),
        ([], "got no pieces"),
    ],
)
def test_a_model_that_contradicts_itself_is_refused(pieces: list[VocabularyPiece], match: str) -> None:
    with pytest.raises(ModelError, match=f"spiece.model: .*{match}"):
        Tokenizer({"spiece.model": model_file(pieces, UNIGRAM, 0, 0, 0)})


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({}, "expected tokenizer.json, or vocab.json with merges.txt"),
        ({"vocab.json": b"{}"}, "got vocab.json"),
        ({"vocab.json": b'{"a": 0, "a": 1}', "merges.txt": b""}, "vocab.json: entry 'a' is there twice"),
        ({"vocab.json": b'{"a": 0}', "merges.txt": b"a"}, "merges.txt: line 1: expected two tokens, got 'a'"),
        (
            {"vocab.json": b'{"a": 0}', "merges.txt": b"a b"},
            r"vocab.json: model.merges\[0\]: token 'b' is not",
        ),
        (
            {"vocab.json": b'{"a": 0}', "merges.txt": b"\xff"},
            "merges.txt: expected UTF-8, which byte 0 is not",
        ),
        ({"vocab.txt": b"[UNK]\na\na\n"}, "vocab.txt: line 3: token 'a' is there twice, first as 1"),
        ({"vocab.txt": b"[UNK]\na\n"}, r"vocab.txt: expected \[CLS\] and \[SEP\]"),
        (
            {"spiece.model": GOOD, "tokenizer_config.json": b'{"tokenizer_class": "XLMRobertaTokenizer"}'},
            "tokenizer_class: expected one of .*Llama.* for a spiece.model, got 'XLMRobertaTokenizer'",
        ),
        (
            {
                "vocab.json": b"{}",
                "merges.txt": b"",
                "tokenizer_config.json": b'{"tokenizer_class": "BlenderbotTokenizer"}',
            },
            "tokenizer_class: expected GPT2",
        ),
        (
            {"spiece.model": model_file([VocabularyPiece("a", 0)], 3, 0, 0, 0)},
            "model_type: expected unigram or bpe, got word",
        ),
    ],
)
def test_bad_folders_are_refused(files: dict[str, bytes], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        Tokenizer(files)
