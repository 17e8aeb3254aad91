"""Answers that follow a grammar match it, whatever the model would write."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from polygrad import hf
from polygrad.errors import ArgumentError


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A random model over bytes, which by itself writes noise."""
    folder = tmp_path_factory.mktemp("bytes")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>")
    fast.save_pretrained(folder)
    config = transformers.Qwen2Config(
        vocab_size=260,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        eos_token_id=fast.eos_token_id,
    )
    torch.manual_seed(0)
    transformers.Qwen2ForCausalLM(config).save_pretrained(folder)
    return hf.load_hf(folder, max_batch=2)


@pytest.mark.parametrize("pattern", [r"[a-f]{3}-[0-9]{2}", r"(yes|no)", "ä{2}€"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_answers_match_a_regular_expression(model: Any, pattern: str, temperature: float) -> None:
    grammar = model.regular_expression(pattern)
    answers = model.generate("x", grammar=grammar, temperature=temperature, n=3, max_new_tokens=40)
    for answer in answers:
        assert re.fullmatch(pattern, answer.text)
        assert answer.finish_reason == "stop"


def test_answers_are_json_of_a_schema(model: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"enum": ["a", "b"]}, "on": {"type": "boolean"}},
        "required": ["name", "on"],
        "additionalProperties": False,
    }
    for seed in range(3):
        answer = model.generate(
            "x", grammar=model.json_schema(schema), temperature=1.0, seed=seed, max_new_tokens=200
        )
        found = json.loads(answer.text)
        assert found["name"] in ("a", "b") and isinstance(found["on"], bool)


def test_only_the_request_that_has_a_grammar_follows_it(model: Any) -> None:
    free = model.generate("y", max_new_tokens=12).tokens
    first = model.scheduler.submit(model.request("y", 12))
    second = model.scheduler.submit(model.request("x", 12, grammar=model.regular_expression("[0-9]{9}")))
    while not (first.is_done and second.is_done):
        model.scheduler.step()
    assert tuple(first.tokens[1:]) == free
    assert re.fullmatch("[0-9]{9}", "".join(piece.text for piece in second.pieces))


def test_what_is_no_grammar_is_refused(model: Any) -> None:
    with pytest.raises(ArgumentError, match="grammar"):
        model.regular_expression("(")
    with pytest.raises(ArgumentError, match="grammar"):
        model.json_schema({"type": "nothing"})
