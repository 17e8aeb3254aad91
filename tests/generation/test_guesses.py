"""Guesses change how many runs of the model an answer takes, and nothing else."""

from __future__ import annotations

from typing import Any

import hf_models
import pytest

from polygrad.generation.engine import CHECKED, Engine
from polygrad.generation.guesses import DraftModel, PromptLookup
from polygrad.generation.scheduler import Scheduler

_SAMPLED: dict[str, Any] = {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "seed": 5}


class Oracle:
    """Guesses the right tokens, but for every fifth."""

    def __init__(self, answer: list[int]) -> None:
        self.answer = answer

    def guess(self, tokens: Any, count: int) -> list[int]:
        at = len(tokens)
        return [t if i % 5 else (t + 1) % 99 for i, t in enumerate(self.answer[at : at + count], at)]


@pytest.mark.parametrize("options", [{}, _SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("kind", ["oracle", "lookup", "draft"])
def test_tokens_are_those_without_guesses(options: dict[str, Any], slots: int, kind: str) -> None:
    prompt = [5, 6, 7, 8, 9, 5, 6, 7]
    expected = hf_models.ours("llama").generate(prompt, max_new_tokens=40, **options).tokens
    model = hf_models.ours("llama", max_batch=slots)
    guesser: Any = {
        "oracle": lambda: Oracle([*prompt, *expected]),
        "lookup": lambda: PromptLookup(longest=2, shortest=1),
        "draft": lambda: DraftModel(Engine(hf_models.ours("qwen2").module)),
    }[kind]()
    runs = 0
    scheduler = Scheduler(Engine(model.module, slots), guesser=guesser)
    sequence = scheduler.submit(model.request(prompt, 40, **options))
    while not sequence.is_done:
        scheduler.step()
        runs += 1
    assert tuple(sequence.tokens[len(prompt) :]) == expected
    assert runs < 20 if kind == "oracle" else runs <= 40


def test_no_guess_is_checked_where_draws_depend_on_each_other() -> None:
    model, prompt = hf_models.ours("llama"), [5, 6, 5, 6, 5]
    options = {**_SAMPLED, "repetition_penalty": 1.5}
    expected = model.generate(prompt, max_new_tokens=20, **options).tokens
    scheduler = Scheduler(Engine(model.module), guesser=PromptLookup(2, 1))
    sequence = scheduler.submit(model.request(prompt, 20, **options))
    while not sequence.is_done:
        scheduler.step()
    assert tuple(sequence.tokens[5:]) == expected


def test_near_the_end_of_the_cache_tokens_come_one_by_one() -> None:
    model, capacity = hf_models.ours("llama", max_seq_len=20), 20
    prompt = hf_models.token_ids(6).tolist()
    expected = model.generate(prompt, max_new_tokens=50).tokens
    assert len(expected) == capacity - len(prompt)
    scheduler = Scheduler(Engine(model.module, 1, capacity), guesser=Oracle([*prompt, *expected]))
    sequence = scheduler.submit(model.request(prompt, 50))
    while not sequence.is_done:
        scheduler.step()
    assert tuple(sequence.tokens[6:]) == expected


def test_lookup_takes_the_longest_and_latest_match() -> None:
    lookup = PromptLookup(longest=3, shortest=2)
    assert lookup.guess([1, 2, 3, 4, 9, 1, 2, 3], 2) == [4, 9]
    assert lookup.guess([1, 2, 5, 1, 2, 6, 1, 2], 1) == [6]
    assert lookup.guess([1, 2, 3, 4], CHECKED) == []
