"""Generation with a cache gives the tokens that transformers gives, and that it gives without one."""

from __future__ import annotations

import hf_models
import pytest
from hf_models import DECODERS

from polygrad import Tensor
from polygrad.errors import ArgumentError
from polygrad.generation.engine import Engine, chunk_lengths, chunks_of

_COUNT = 64
_QUICK = ("llama", "gpt2", "mistral", "gemma3", "phi3, long")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in _QUICK else [pytest.mark.slow]) for n in DECODERS]
)
def test_64_greedy_tokens_are_transformers(name: str) -> None:
    # a model with other frequencies for long texts uses them from the start here, as its cache may be long
    lengths = (20, 25, 37) if "long" in name else (5, 13, 37)
    prompts = [hf_models.token_ids(n).tolist() for n in lengths]
    expected = [hf_models.greedy(name, p, _COUNT) for p in prompts]
    for batch in (1, 3):
        model = hf_models.ours(name, max_batch=batch)
        answers = model.generate(prompts, max_new_tokens=_COUNT, temperature=0.0)
        assert [list(a.tokens) for a in answers] == expected
        assert {a.finish_reason for a in answers} == {"length"}


def test_without_a_cache_the_tokens_are_the_same() -> None:
    model, tokens = hf_models.ours("llama"), hf_models.token_ids(7).tolist()
    answer = model.generate(tokens, max_new_tokens=12).tokens
    for _ in range(12):
        tokens.append(int(model.forward(input_ids=[tokens])["logits"][0, -1].argmax().item()))
    assert tokens[7:] == list(answer)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_cache_of_16_bits_holds_half_as_much(dtype: str) -> None:
    model = hf_models.ours("llama")
    wide, narrow = (Engine(model.module, 1, 64, d).cache for d in ("float32", dtype))
    assert narrow.nbytes * 2 == wide.nbytes
    model.cache_dtype = dtype
    prompt = hf_models.token_ids(9).tolist()
    answer = model.generate(prompt, max_new_tokens=8).tokens
    assert answer[:2] == tuple(hf_models.greedy("llama", prompt, 2))


def test_no_length_is_compiled_for() -> None:
    model = hf_models.ours("llama")
    model.generate(hf_models.token_ids(5).tolist(), max_new_tokens=4)
    engine = model.scheduler.engine
    for length in (2, 6, 3, 8, 7):
        model.generate(hf_models.token_ids(length).tolist(), max_new_tokens=20)
    assert sorted(key[0] for key in engine._programs) == ["decode", "run"]
    assert all(program.captured for program in engine._programs.values())


@pytest.mark.parametrize("capacity", [5, 8, 20, 40, 600, 2000])
@pytest.mark.parametrize("start", [0, 1, 3, 15])
def test_runs_cover_each_token_and_stay_inside(capacity: int, start: int) -> None:
    for count in range(start + 1, capacity + 1):
        runs = chunks_of(count, start, chunk_lengths(capacity))
        seen = {i for first, length in runs for i in range(first, first + length)}
        assert seen >= set(range(start, count))
        assert all(first >= 0 and first + length <= capacity for first, length in runs)
        assert all(first + length <= count for first, length in runs[:-1])


def test_what_does_not_fit_is_refused() -> None:
    model = hf_models.ours("llama", max_seq_len=16)
    with pytest.raises(ArgumentError, match="16 tokens, with room for 15"):
        model.generate([3] * 16)
    with pytest.raises(ArgumentError, match="token 99 is not one of the model's 99"):
        model.generate([3, 99])
    with pytest.raises(ArgumentError, match="at least one token"):
        model.generate([[]])
    with pytest.raises(ArgumentError, match="capacity: expected 1 to 128"):
        Engine(model.module, 1, 129)
    assert len(model.generate([3] * 15).tokens) == 1  # what fits, and the next call works


def test_states_are_left_alone_by_other_sequences() -> None:
    """A prompt that is long, between tokens of others: what they get is what they get alone."""
    model = hf_models.ours("gpt2", max_batch=2)
    alone = [model.generate(hf_models.token_ids(n).tolist(), max_new_tokens=20).tokens for n in (4, 70)]
    first = model.scheduler.submit(model.request(hf_models.token_ids(4).tolist(), 20))
    for _ in range(5):
        model.scheduler.step()
    second = model.scheduler.submit(model.request(hf_models.token_ids(70).tolist(), 20))
    while not (first.is_done and second.is_done):
        model.scheduler.step()
    assert [tuple(s.tokens[len(s.request.tokens) :]) for s in (first, second)] == alone


def test_a_cancelled_sequence_frees_its_slot() -> None:
    model, prompt = hf_models.ours("llama"), hf_models.token_ids(6).tolist()
    whole = model.generate(prompt, max_new_tokens=10).tokens
    stream = model.stream(prompt, max_new_tokens=10)
    assert next(stream).tokens == whole[:1]
    stream.close()
    model.scheduler.step()
    assert model.scheduler.is_idle
    assert model.generate(prompt, max_new_tokens=10).tokens == whole


def test_gradients_are_not_kept() -> None:
    model = hf_models.ours("llama")
    model.generate(hf_models.token_ids(4).tolist(), max_new_tokens=4)
    assert all(t.grad is None for t in model.weights().values())
    assert Tensor.is_grad_enabled()


@pytest.mark.parametrize("batch", [1, 2])
def test_a_model_writes_on_the_device_that_it_was_loaded_to(batch: int) -> None:
    prompt = hf_models.token_ids(9).tolist()
    options = {"temperature": 0.8, "repetition_penalty": 1.2, "seed": 0}
    expected = hf_models.ours("llama").generate(prompt, max_new_tokens=12, **options).tokens
    model = hf_models.ours("llama", device="WASM", max_batch=batch)
    assert model.generate(prompt, max_new_tokens=12, **options).tokens == expected
    assert {t.device for t in model.weights().values()} == {"WASM"}
