"""Records as tokens and labels."""

from __future__ import annotations

from pathlib import Path

import pytest
import tuning_models

from polygrad import hf
from polygrad.errors import ArgumentError
from polygrad.tuning import examples_of, read_records


@pytest.fixture(scope="module")
def tokenizer() -> hf.Tokenizer:
    return hf.Tokenizer(tuning_models.folder())


def counted(tokenizer: hf.Tokenizer, example: object) -> str:
    """The text of the labels that count."""
    return tokenizer.decode([x for x in example.labels if x != -100], skip_special_tokens=False)  # type: ignore[attr-defined]


def whole(tokenizer: hf.Tokenizer, example: object) -> str:
    return tokenizer.decode(example.ids, skip_special_tokens=False)  # type: ignore[attr-defined]


def test_of_a_text_all_counts_but_the_first_token(tokenizer: hf.Tokenizer) -> None:
    (found,) = examples_of([{"text": "the old cat"}], tokenizer, 64)
    assert whole(tokenizer, found) == "<s>the old cat<|end|>"
    assert counted(tokenizer, found) == "the old cat<|end|>"
    assert all(label in (-100, token) for token, label in zip(found.ids, found.labels, strict=True))


def test_of_a_prompt_the_completion_counts(tokenizer: hf.Tokenizer) -> None:
    (found,) = examples_of([{"prompt": "the old ", "completion": "cat"}], tokenizer, 64)
    assert whole(tokenizer, found) == "<s>the old cat<|end|>"
    assert counted(tokenizer, found) == "cat<|end|>"
    asked = tuple(tokenizer.encode("the old "))
    assert found.ids[: len(asked)] == asked  # the tokens with which the model is asked


def conversation() -> list[dict[str, str]]:
    return [
        {"role": "user", "content": "cat?"},
        {"role": "assistant", "content": "the cat"},
        {"role": "user", "content": "dog?"},
        {"role": "assistant", "content": "the dog"},
    ]


def test_of_a_conversation_the_assistants_parts_count(tokenizer: hf.Tokenizer) -> None:
    (found,) = examples_of([{"messages": conversation()}], tokenizer, 64)
    text = tokenizer.apply_chat_template(conversation(), add_generation_prompt=False)
    assert whole(tokenizer, found) == text
    assert counted(tokenizer, found) == "the cat<|end|>the dog<|end|>"


def test_a_template_that_writes_the_last_answer_otherwise_gives_an_example_for_each() -> None:
    tokenizer = hf.Tokenizer(tuning_models.folder(tuning_models.THINKING))
    first, second = examples_of([{"messages": conversation()}], tokenizer, 64)
    assert whole(tokenizer, first) == "<|user|>cat?<|end|><|assistant|>hm: the cat<|end|>"
    assert counted(tokenizer, first) == "hm: the cat<|end|>"
    assert whole(tokenizer, second).startswith("<|user|>cat?<|end|><|assistant|>the cat<|end|><|user|>dog?")
    assert counted(tokenizer, second) == "hm: the dog<|end|>"


def test_long_texts_are_divided_and_other_records_cut(tokenizer: hf.Tokenizer) -> None:
    long = " ".join(tuning_models.TEXTS)
    parts = examples_of([{"text": long}], tokenizer, 10)
    assert len(parts) > 3 and all(len(x.ids) <= 10 for x in parts)
    joined = [token for x in parts for token in x.ids]
    assert tokenizer.decode(joined, skip_special_tokens=False).startswith(f"<s>{long[:-20]}")
    (cut,) = examples_of([{"prompt": "the", "completion": long}], tokenizer, 10)
    assert len(cut.ids) == 10
    assert examples_of([{"prompt": long, "completion": "x"}], tokenizer, 10) == []  # nothing counts


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"txt": "x"}, "record 2: expected .*text.*got .'txt'."),
        ({"text": 3}, "record 2: text: expected text, got int"),
        ({"messages": []}, "at least one of the assistant"),
        ({"messages": "x"}, "messages: expected a list"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "a message before"),
        ([], "record 2: expected a dict"),
    ],
)
def test_what_is_no_record_is_named(tokenizer: hf.Tokenizer, record: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        examples_of([{"text": "the"}, record], tokenizer, 64)  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"text": "a"}\n\n{"text": ', "line 3: expected a JSON object"),
        ("[1]", "line 1: expected a JSON object, got list"),
        ("", "expected at least one record"),
    ],
)
def test_a_damaged_file_is_named_with_the_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=rf"x.jsonl: {message}"):
        read_records(path)
    with pytest.raises(ArgumentError, match=r"no\.jsonl"):
        read_records(tmp_path / "no.jsonl")
