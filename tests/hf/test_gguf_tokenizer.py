"""Tokenizers in GGUF metadata against the tokenizers that the metadata is made of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hf_sentencepiece import pieces_of_bpe, pieces_of_unigram, sentencepiece_bpe
from hf_tokenizers import special_tokens, strings, trained
from tokenizers import Regex, normalizers
from tokenizers import Tokenizer as Library

from polygrad.errors import ModelError
from polygrad.hf import Tokenizer
from polygrad.hf.split_patterns import NAMES

COUNT = 500
_NORMAL, _CONTROL, _USER = 1, 3, 4


def _metadata(judge: Any, model: str, **entries: Any) -> dict[str, Any]:
    """What llama.cpp's converter writes."""
    ids = judge.get_vocab()
    tokens = sorted(ids, key=ids.__getitem__)
    added = judge.added_tokens_decoder
    kinds = [
        _NORMAL if i not in added else _CONTROL if added[i].special else _USER for i in range(len(tokens))
    ]
    out = {"model": model, "tokens": tokens, "token_type": kinds}
    names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding", "sep": "seperator", "cls": "cls"}
    for name, key in names.items():
        if (number := getattr(judge, f"{name}_token_id")) is not None:
            out[f"{key}_token_id"] = number
    return {f"tokenizer.ggml.{name}": value for name, value in {**out, **entries}.items()}


def _merges(judge: Any) -> list[str]:
    return [" ".join(pair) for pair in json.loads(judge.backend_tokenizer.to_str())["model"]["merges"]]


@pytest.mark.parametrize(
    ("kind", "name"), [("gpt2", "gpt-2"), ("llama3", "llama-bpe"), ("qwen2", "qwen2"), ("smollm", "smollm")]
)
def test_byte_level_bpe_by_the_name_of_its_family(kind: str, name: str) -> None:
    judge, _ = trained(kind)
    metadata = _metadata(judge, "gpt2", pre=name, merges=_merges(judge))
    metadata["tokenizer.chat_template"] = "{{ messages[0].content }}{{ eos_token }}"
    tokenizer = Tokenizer.from_gguf(metadata)
    # What GGUF does not keep: that an added token stands for whole words only.
    special = [token for token in special_tokens(judge) if token != "héé"]
    for text in strings(COUNT, special, seed=6):
        if "héé" not in text:
            assert tokenizer.encode(text) == judge.encode(text), repr(text)
            assert tokenizer.decode(tokenizer.encode(text)) == judge.decode(
                judge.encode(text), skip_special_tokens=True
            )
    assert tokenizer.eos_ids[0] == judge.eos_token_id
    assert tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}]) == "Hi" + judge.eos_token


def test_every_name_is_a_tokenizer_that_gives_the_text_back() -> None:
    judge, _ = trained("gpt2")
    for name in NAMES:
        tokenizer = Tokenizer.from_gguf(_metadata(judge, "gpt2", pre=name, merges=_merges(judge)))
        for text in strings(200, ["<|endoftext|>"], seed=7):
            normal = text if "qwen" not in name else normalizers.NFC().normalize_str(text)
            assert tokenizer.decode(tokenizer.encode(text, False), False) == normal, name


def test_bert_has_its_marks_before_words() -> None:
    for kind in ("bert", "bert_cased"):
        judge, _ = trained(kind)
        metadata = _metadata(judge, "bert")
        key = "tokenizer.ggml.tokens"
        marked = [
            t if t[0] == "[" and t[-1] == "]" else t[2:] if t[:2] == "##" else f"▁{t}" for t in metadata[key]
        ]
        tokenizer = Tokenizer.from_gguf({**metadata, key: marked})
        for text in strings(COUNT, special_tokens(judge), seed=8):
            assert tokenizer.encode(text) == judge.encode(text), repr(text)
            assert tokenizer.encode_pair(text, "the") == judge.encode(text, "the")


def test_t5_is_unigram() -> None:
    judge, _ = trained("t5")
    made = Library.from_str(judge.backend_tokenizer.to_str())
    made.normalizer = normalizers.Sequence(
        [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")]
    )
    pieces = pieces_of_unigram(judge)
    metadata = _metadata(judge, "t5")
    metadata["tokenizer.ggml.tokens"] = [piece.text for piece in pieces]
    metadata["tokenizer.ggml.token_type"] = [piece.kind for piece in pieces]
    metadata["tokenizer.ggml.scores"] = [piece.score for piece in pieces]
    tokenizer = Tokenizer.from_gguf(metadata)
    for text in strings(COUNT, ["</s>"], seed=9):
        assert tokenizer.encode(text) == made.encode(text).ids, repr(text)


def test_llama_merges_by_scores() -> None:
    judge, _ = trained("llama2")
    pieces = pieces_of_bpe(judge)
    metadata = _metadata(judge, "llama", scores=[piece.score for piece in pieces])
    metadata["tokenizer.ggml.token_type"] = [piece.kind for piece in pieces]
    tokenizer = Tokenizer.from_gguf(metadata)
    for text in strings(COUNT, ["the"], seed=4):
        if len(text) < 200:
            assert tokenizer.encode(text) == [1, *sentencepiece_bpe(text, pieces)], repr(text)
            assert tokenizer.decode(tokenizer.encode(text)) == text.replace("▁", " ")
    bare = Tokenizer.from_gguf({**metadata, "tokenizer.ggml.add_bos_token": False})
    assert bare.encode("the") == tokenizer.encode("the")[1:]
    gemma = Tokenizer.from_gguf({**metadata, "tokenizer.ggml.add_space_prefix": False})
    assert gemma.decode(gemma.encode(" the")) == " the" and gemma.encode("the") != tokenizer.encode("the")


def test_further_ends() -> None:
    judge, _ = trained("llama3")
    metadata = _metadata(judge, "gpt2", pre="llama-bpe", merges=_merges(judge), eot_token_id=1)
    assert Tokenizer.from_gguf(metadata).eos_ids == (4, 1)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"model": "rwkv"}, r"tokenizer.ggml.model: expected one of bert, gpt2, llama, t5, got 'rwkv'"),
        ({"model": 3}, "tokenizer.ggml.model: got int"),
        ({"pre": "martian"}, "tokenizer.ggml.pre: expected one of .*, got 'martian'"),
        ({"tokens": ["a", "b", "a"]}, "tokenizer.ggml.tokens: 0 and 2 are both 'a'"),
        ({"tokens": []}, "tokenizer.ggml.tokens: expected a list of tokens, got none"),
        ({"tokens": [1]}, "tokenizer.ggml.tokens: expected strings"),
        (
            {"token_type": [1]},
            "tokenizer.ggml.token_type: expected .* finite numbers, as there are tokens, got 1",
        ),
        ({"merges": None}, "tokenizer.ggml.merges: expected a list of merges, got none"),
        ({"merges": ["a"]}, "tokenizer.ggml.merges: line 1: expected two tokens, got 'a'"),
        ({"merges": ["no such"]}, r"model.merges\[0\]: token 'no' is not in the vocabulary"),
        ({"eos_token_id": 10**6}, "tokenizer.ggml.eos_token_id: expected an id below .*, got 1000000"),
        ({"add_bos_token": 1}, "tokenizer.ggml.add_bos_token: got int"),
        ({"model": "llama"}, "tokenizer.ggml.scores: expected a score for each token, got none"),
    ],
)
def test_metadata_that_contradicts_itself_is_refused(changes: dict[str, Any], match: str) -> None:
    judge, _ = trained("gpt2")
    metadata = _metadata(judge, "gpt2", pre="gpt-2", merges=_merges(judge))
    metadata |= {f"tokenizer.ggml.{name}": value for name, value in changes.items()}
    with pytest.raises(ModelError, match=match):
        Tokenizer.from_gguf(metadata)


def test_a_template_that_is_no_text_is_refused() -> None:
    judge, _ = trained("gpt2")
    metadata = _metadata(judge, "gpt2", pre="gpt-2", merges=_merges(judge))
    with pytest.raises(ModelError, match=r"tokenizer.chat_template: expected text, got int"):
        Tokenizer.from_gguf({**metadata, "tokenizer.chat_template": 1})
