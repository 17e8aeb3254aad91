"""Tokenizers against `transformers`: the same ids and the same text for strings of every kind."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from hf_tokenizers import KINDS, special_tokens, strings, trained

from polygrad.errors import ArgumentError, ModelError
from polygrad.hf import Tokenizer

COUNT = 2000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 400


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_encode_gives_the_ids_of_transformers_for_many_strings(kind: str) -> None:
    judge, folder = trained(kind)
    tokenizer = Tokenizer(folder)
    for text in strings(COUNT, special_tokens(judge)):
        for special in (True, False):
            assert tokenizer.encode(text, special) == judge.encode(text, add_special_tokens=special), repr(
                text
            )


def test_decode_gives_the_text_of_transformers_for_many_strings_and_random_ids(kind: str) -> None:
    judge, folder = trained(kind)
    tokenizer = Tokenizer(folder)
    rng = random.Random(1)
    rows = [judge.encode(text) for text in strings(COUNT, special_tokens(judge))]
    rows += [[rng.randrange(len(judge) + 3) for _ in range(rng.randrange(1, 30))] for _ in range(500)]
    for ids in rows:
        for skip in (True, False):
            assert tokenizer.decode(ids, skip) == judge.decode(ids, skip_special_tokens=skip), ids


def test_a_stream_gives_whole_characters_that_joined_are_the_text(kind: str) -> None:
    judge, folder = trained(kind)
    tokenizer = Tokenizer(folder)
    for text in strings(COUNT, special_tokens(judge)):
        ids = tokenizer.encode(text)
        for skip in (True, False):
            stream = tokenizer.stream(skip)
            parts = [*map(stream.feed, ids), stream.finish()]
            whole = judge.decode(ids, skip_special_tokens=skip)
            assert "".join(parts) == whole
            # No part has a replacement character that the whole has not.
            assert sum(part.count("\ufffd") for part in parts) == whole.count("\ufffd")


def test_a_stream_does_not_wait_for_the_end(kind: str) -> None:
    _, folder = trained(kind)
    tokenizer = Tokenizer(folder)
    stream = tokenizer.stream()
    text = "the quick brown fox jumps over the lazy dog and we see what they have done with it"
    parts = list(map(stream.feed, tokenizer.encode(text)))
    waiting = stream.finish()
    assert len(waiting) < 12 and sum(part != "" for part in parts) > 8


def test_pairs_and_batches(kind: str) -> None:
    judge, folder = trained(kind)
    tokenizer = Tokenizer(folder)
    texts = strings(60, special_tokens(judge), seed=5)[1:]  # transformers takes an empty second text for none
    for text, other in zip(texts, reversed(texts)):
        assert tokenizer.encode_pair(text, other) == judge(text, other)["input_ids"]
        assert (
            tokenizer.encode_pair(text, other, False)
            == judge(text, other, add_special_tokens=False)["input_ids"]
        )
    if judge.pad_token is None:
        with pytest.raises(ArgumentError, match="no padding token"):
            tokenizer.encode_batch(["a", "a b c d"])
        return
    for side in ("left", "right"):
        judge.padding_side = side
        for rows in (texts, list(zip(texts, reversed(texts)))):
            expected = judge(rows, padding=True, return_token_type_ids=True)
            got = tokenizer.encode_batch(rows, padding_side=side)
            assert got.ids == expected["input_ids"]
            assert got.attention_mask == expected["attention_mask"]
            assert got.type_ids == expected["token_type_ids"]
        expected = judge(texts, padding=True, truncation=True, max_length=10)
        assert tokenizer.encode_batch(texts, padding_side=side, max_length=10).ids == expected["input_ids"]


def test_the_vocabulary(kind: str) -> None:
    judge, folder = trained(kind)
    tokenizer = Tokenizer(folder)
    assert tokenizer.size == len(judge)
    assert (tokenizer.bos_id, tokenizer.pad_id) == (judge.bos_token_id, judge.pad_token_id)
    assert tokenizer.eos_ids == (() if judge.eos_token_id is None else (judge.eos_token_id,))
    for token, number in judge.get_vocab().items():
        assert tokenizer.id(token) == number and tokenizer.token(number) == token


def test_the_side_of_padding_is_the_files() -> None:
    _, folder = trained("qwen2")
    tokenizer = Tokenizer(folder)
    batch = tokenizer.encode_batch(["a", "a b c d"])
    assert batch.attention_mask[0][0] == 0 and batch.attention_mask[0][-1] == 1
    assert batch.ids[0][0] == tokenizer.pad_id


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama2", "xlm"])
def test_spaces_before_punctuation_are_removed_except_with_bpe(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, folder = trained(kind)
    monkeypatch.setattr(judge, "clean_up_tokenization_spaces", True)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    config = json.loads(files["tokenizer_config.json"]) | {"clean_up_tokenization_spaces": True}
    tokenizer = Tokenizer({**files, "tokenizer_config.json": json.dumps(config).encode()})
    ids = judge.encode("it 's . hello , you do n't !")
    assert tokenizer.decode(ids) == judge.decode(ids, skip_special_tokens=True)
    assert (" ," in tokenizer.decode(ids)) == (kind in ("gpt2", "llama2"))


def test_bytes_of_the_files_are_a_source() -> None:
    _, folder = trained("bert")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert Tokenizer(files).encode("hello") == Tokenizer(folder).encode("hello")


def test_further_ends_come_from_the_generation_config(tmp_path: Path) -> None:
    _, folder = trained("llama3")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    tokenizer = Tokenizer({**files, "generation_config.json": b'{"eos_token_id": [1, 4]}'})
    assert tokenizer.eos_ids == (4, 1)


def test_what_is_no_text_and_no_id_is_refused() -> None:
    _, folder = trained("gpt2")
    tokenizer = Tokenizer(folder)
    with pytest.raises(ArgumentError, match=r"lone surrogate, '\\ud83d', at character 2"):
        tokenizer.encode("ab\ud83dc")
    with pytest.raises(ArgumentError, match="text: expected a str, got bytes"):
        tokenizer.encode(b"ab")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="id: expected one of the"):
        tokenizer.token(10**6)
    with pytest.raises(ArgumentError, match="token: expected one of the"):
        tokenizer.id("no such token")
    with pytest.raises(ArgumentError, match="padding_side: expected left or right"):
        tokenizer.encode_batch(["a"], padding_side="up")
    with pytest.raises(ArgumentError, match="room for the special tokens"):
        Tokenizer(trained("bert")[1]).encode_batch(["a"], max_length=1)


def test_ids_beyond_the_embedding_are_refused() -> None:
    judge, folder = trained("gpt2")
    Tokenizer(folder, embedding_rows=len(judge))
    with pytest.raises(
        ModelError, match=rf"tokenizer.json: token .* has the id {len(judge) - 1}, the model's"
    ):
        Tokenizer(folder, embedding_rows=len(judge) - 1)
