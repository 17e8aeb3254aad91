"""Beam search finds the answers that transformers finds."""

from __future__ import annotations

import itertools
from typing import Any

import hf_models
import pytest
import torch

from polygrad.errors import ArgumentError
from polygrad.generation.beams import BeamOptions, beam_search
from polygrad.generation.engine import Engine


def _cases() -> list[Any]:
    quick = {("llama", 0.0, True, 4), ("llama", 2.0, False, 4)}
    every = itertools.product(("llama", "gpt2"), (0.0, 1.0, 2.0), (False, True), (2, 4))
    return [pytest.param(*c, marks=[] if c in quick else [pytest.mark.slow]) for c in every]


@pytest.mark.parametrize(("name", "penalty", "early", "width"), _cases())
def test_answers_are_transformers(name: str, penalty: float, early: bool, width: int) -> None:
    model, _ = hf_models.reference(name)
    ours = hf_models.ours(name)
    engine = Engine(ours.module, width)
    for seed in range(3):
        prompt = hf_models.token_ids(6, seed=seed).tolist()
        for end in (7, 40):
            expected = model.generate(
                torch.tensor([prompt]),
                max_new_tokens=12,
                do_sample=False,
                num_beams=width,
                num_return_sequences=width,
                length_penalty=penalty,
                early_stopping=early,
                eos_token_id=end,
                pad_token_id=0,
                return_dict_in_generate=True,
                output_scores=True,
            )
            found = beam_search(engine, prompt, {end}, BeamOptions(12, penalty, early))
            answers = [_without_end(row, len(prompt), end) for row in expected.sequences.tolist()]
            assert [list(b.tokens) for b in found] == answers
            assert [b.score for b in found] == pytest.approx(expected.sequences_scores.tolist(), abs=1e-3)


def _without_end(row: list[int], start: int, end: int) -> list[int]:
    answer = row[start:]
    return answer[: answer.index(end)] if end in answer else answer


def test_one_slot_is_no_search() -> None:
    engine: Any = Engine(hf_models.ours("llama").module, 1)
    with pytest.raises(ArgumentError, match="2 slots"):
        beam_search(engine, [5], set(), BeamOptions())


def test_generate_searches_with_beams() -> None:
    model = hf_models.ours("llama")
    best, *others = model.generate([5, 6, 7], max_new_tokens=8, beams=3, n=3)
    assert len(others) == 2 and {a.finish_reason for a in (best, *others)} == {"length"}
    alone = model.generate([5, 6, 7], max_new_tokens=8, beams=3)
    assert alone == best
    with pytest.raises(ArgumentError, match="temperature"):
        model.generate([5, 6, 7], beams=3, temperature=1.0)
