"""Draws follow the distribution that transformers' processors make, and depend on seed and position alone."""

from __future__ import annotations

from typing import Any

import hf_models
import numpy as np
import pytest
import torch
import transformers

from polygrad import Tensor
from polygrad.errors import ArgumentError
from polygrad.generation.sampling import Needs, Sampler, Sampling

_VOCABULARY = 40
_ROWS = 2000


def _logits(seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(_VOCABULARY) * 2).astype(np.float32)


def _processed(logits: np.ndarray, s: Sampling, seen: list[int], drawn: list[int]) -> np.ndarray:
    """The probabilities that transformers' processors leave."""
    scores = torch.tensor(logits)[None]
    for token, value in s.logit_bias.items():
        scores[0, token] += value
    ids = torch.tensor([[*seen, *drawn]])
    processors: list[Any] = []
    if s.repetition_penalty != 1:
        processors.append(transformers.RepetitionPenaltyLogitsProcessor(s.repetition_penalty))
    for process in processors:
        scores = process(ids, scores)
    for token in set(drawn):
        scores[0, token] -= s.presence_penalty + s.frequency_penalty * drawn.count(token)
    warpers: list[Any] = [transformers.TemperatureLogitsWarper(s.temperature)]
    if s.top_k:
        warpers.append(transformers.TopKLogitsWarper(s.top_k))
    if s.top_p < 1:
        warpers.append(transformers.TopPLogitsWarper(s.top_p))
    if s.min_p:
        warpers.append(transformers.MinPLogitsWarper(s.min_p))
    for warp in warpers:
        scores = warp(ids, scores)
    return scores.softmax(-1)[0].numpy()


CASES = [
    Sampling(temperature=1.0),
    Sampling(temperature=0.7),
    Sampling(temperature=1.0, top_k=5),
    Sampling(temperature=1.3, top_k=5, top_p=0.6),
    Sampling(temperature=1.0, top_p=0.7),
    Sampling(temperature=0.8, top_p=0.95, min_p=0.05),
    Sampling(temperature=1.0, min_p=0.2),
    Sampling(temperature=1.0, repetition_penalty=1.7),
    Sampling(temperature=1.0, presence_penalty=0.9, frequency_penalty=0.4),
    Sampling(temperature=1.0, logit_bias={3: 4.0, 5: -1e9}),
    Sampling(temperature=1.0, top_k=8, top_p=0.9, min_p=0.01, repetition_penalty=0.8, presence_penalty=-0.5),
]


@pytest.mark.parametrize("sampling", CASES, ids=lambda s: str(s.needs))
def test_2000_draws_follow_transformers_distribution(sampling: Sampling) -> None:
    seen, drawn = [1, 2, 3], [4, 4, 7]
    logits = _logits()
    expected = _processed(logits, sampling, seen, drawn)
    sampler = Sampler(1, _VOCABULARY)
    needs = sampling.needs
    sampler.start(0, sampling, seen)
    for token in drawn:  # forced, so that they are counted
        forced = np.full((1, _VOCABULARY), -1e9, np.float32)
        forced[0, token] = 1e9
        Tensor.realize(sampler.sample(Tensor(forced), 0, Tensor([0]), needs).tokens)
    # all rows are of one sequence, at other positions
    rows = Sampler(_ROWS, _VOCABULARY)
    for name in ("_numbers", "_seeds", "_bias", "_is_seen", "_counts"):
        state = getattr(sampler, name)
        if state is not None:
            setattr(rows, name, state.expand(_ROWS, *state.shape[1:]).contiguous().realize())
    tokens = rows.sample(
        Tensor(logits).expand(_ROWS, _VOCABULARY), 0, Tensor.arange(_ROWS), needs
    ).tokens.numpy()
    counts = np.bincount(tokens, minlength=_VOCABULARY) / _ROWS
    assert not counts[expected == 0].any()
    error = np.abs(counts - expected)
    assert (error < 5 * np.sqrt(expected * (1 - expected) / _ROWS) + 1e-3).all()


def test_temperature_0_takes_the_greatest_score() -> None:
    sampler = Sampler(2, _VOCABULARY)
    sampler.start(0, Sampling(), [])
    sampler.start(1, Sampling(temperature=1.0, top_k=1), [])
    logits = np.stack([_logits(0), _logits(1)])
    tokens = sampler.sample(Tensor(logits), 0, Tensor([0, 0]), Needs(draw=True, candidates=16)).tokens
    assert tokens.tolist() == logits.argmax(1).tolist()


def test_a_draw_is_the_same_in_every_batch() -> None:
    prompts = [hf_models.token_ids(n, seed=n).tolist() for n in (5, 13, 20, 3, 31)]
    options: dict[str, Any] = {"temperature": 0.9, "top_p": 0.9, "seed": 3, "max_new_tokens": 20}
    alone = hf_models.ours("llama")
    expected = [alone.generate(p, **options).tokens for p in prompts]
    together = hf_models.ours("llama", max_batch=3)
    assert [a.tokens for a in together.generate(prompts, **options)] == expected
    assert together.generate(prompts[0], **{**options, "seed": 4}).tokens != expected[0]


def test_several_answers_differ_and_repeat() -> None:
    model = hf_models.ours("gpt2", max_batch=2)
    options: dict[str, Any] = {"temperature": 1.0, "max_new_tokens": 12, "n": 3, "seed": 0}
    first = [a.tokens for a in model.generate([5, 6, 7], **options)]
    assert len(set(first)) == 3
    assert [a.tokens for a in model.generate([5, 6, 7], **options)] == first


def test_log_probabilities_are_the_models() -> None:
    model, prompt = hf_models.ours("llama"), hf_models.token_ids(8).tolist()
    answer = model.generate(prompt, max_new_tokens=4, log_probabilities=3)
    logits = model.forward(input_ids=[[*prompt, *answer.tokens]])["logits"]
    logs = logits.log_softmax(-1).numpy()[0, len(prompt) - 1 :]
    for i, (token, log) in enumerate(zip(answer.tokens, answer.logs, strict=True)):
        assert log.log_probability == pytest.approx(logs[i, token], abs=1e-4)
        best = np.argsort(-logs[i])[:3].tolist()
        assert list(log.top) == best
        assert list(log.top.values()) == pytest.approx(logs[i, best].tolist(), abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "temperature: expected at least 0"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": -1}, "top_k: expected an integer from 0"),
        ({"top_p": 0.0}, "top_p: expected more than 0"),
        ({"min_p": 1.5}, "min_p: expected from 0 to 1"),
        ({"repetition_penalty": 0.0}, "repetition_penalty: expected more than 0"),
        ({"seed": -1}, "seed: expected an integer of 64 bits"),
    ],
)
def test_settings_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Sampling(**options)


def test_without_a_seed_each_answer_is_another_and_manual_seed_repeats_them() -> None:
    model = hf_models.ours("llama", max_batch=4)
    options: dict[str, Any] = {"temperature": 1.5, "max_new_tokens": 12, "stop_tokens": ()}

    def answers() -> list[tuple[int, ...]]:
        found = [model.generate([5, 6, 7], **options).tokens for _ in range(3)]
        together = model.generate([[5, 6, 7]] * 2, **options)
        several = model.generate([5, 6, 7], n=2, **options)
        return [*found, *(a.tokens for a in [*together, *several])]

    Tensor.manual_seed(7)
    first = answers()
    assert len(set(first)) == len(first)
    Tensor.manual_seed(7)
    assert answers() == first
    assert not set(answers()) & set(first)
    assert model.generate([5, 6, 7], seed=3, **options) == model.generate([5, 6, 7], seed=3, **options)
    counted = model.generate([5, 6, 7], n=2, seed=3, **options)
    assert counted[1] == model.generate([5, 6, 7], seed=4, **options)


def test_seeds_that_are_drawn_leave_the_draws_of_tensors_alone() -> None:
    model = hf_models.ours("llama")
    Tensor.manual_seed(1)
    expected = Tensor.rand(4).tolist()
    Tensor.manual_seed(1)
    model.generate([5, 6], temperature=1.0, max_new_tokens=2)
    assert Tensor.rand(4).tolist() == expected
