"""T5 and Whisper token by token: on caches, captured, and through the engine of generation."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoder_cases import CASES
from model_checkpoints import difference, load, own_inputs, randomize, save, torch_inputs

from polygrad import Tensor, TinyJit, Variable, nn
from polygrad.engine.counters import GlobalCounters
from polygrad.errors import ArgumentError, ModelError
from polygrad.generation.engine import Engine
from polygrad.generation.sampling import Needs, Sampling
from polygrad.models.cache import NextTokens, TokenSpan

NAMES = ["t5", "t5-gated", "whisper"]
SLOTS, LENGTH, CAPACITY = 4, 20, 16


@functools.cache
def checkpoint(name: str) -> tuple[Any, Path]:
    """A torch model and its folder."""
    model = randomize(CASES[name].model())
    return model, save(model, Path(tempfile.mkdtemp()))


def _source(name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """What the encoder reads, and its mask."""
    inputs = CASES[name].inputs()
    return inputs.get("input_ids", inputs.get("input_features")), inputs.get("attention_mask")


def _inputs(source: np.ndarray, mask: np.ndarray | None, tokens: np.ndarray) -> dict[str, np.ndarray]:
    name = "input_ids" if source.ndim == 2 else "input_features"
    return {name: source, "decoder_input_ids": tokens} | ({} if mask is None else {"attention_mask": mask})


def _logits(name: str, source: np.ndarray, mask: np.ndarray | None, tokens: np.ndarray) -> np.ndarray:
    """By torch: (batch, length, vocabulary)."""
    with torch.no_grad():
        return checkpoint(name)[0](**torch_inputs(_inputs(source, mask, tokens))).logits.numpy()


def _tensors(*arrays: np.ndarray | None) -> list[Any]:
    return list(own_inputs(dict(enumerate(arrays))).values())  # type: ignore[arg-type]


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("default_device")
def test_a_step_on_caches_gives_what_the_whole_sequence_gives_within_1e_4(name: str, device: str) -> None:
    """Prompts by slot, then captured steps of all slots; then another source in one slot, which the same
    captured step reads."""
    model, _ = load(checkpoint(name)[1])
    source, mask = _source(name)
    tokens = CASES[name].inputs()["decoder_input_ids"]
    batch, length = tokens.shape
    memory, cache = model.new_memory(SLOTS, LENGTH), model.new_cache(SLOTS, CAPACITY)
    step = TinyJit(
        lambda new, positions, count: model.next_logits(new, NextTokens(cache, positions, count), memory)
    )
    count = Variable("count", 1, CAPACITY)

    def check(expected: np.ndarray, slots: Sequence[int], rows: Sequence[int]) -> None:
        """The logits of `rows` of tokens, which are read into slots."""
        for slot, row in zip(slots, rows, strict=True):
            got = model.next_logits(Tensor(tokens[row : row + 1, :3]), TokenSpan(cache, slot, 0, 3), memory)
            assert difference(got[0], torch.tensor(expected[row, 2])) < 1e-4
        for i in range(3, length):
            new, positions = np.zeros((SLOTS, 1), np.int32), np.zeros(SLOTS, np.int32)
            new[list(slots), 0], positions[list(slots)] = tokens[list(rows), i], i
            got = step(Tensor(new).realize(), Tensor(positions).realize(), count.bind(i + 1))
            assert difference(got[list(slots)], torch.tensor(expected[list(rows), i])) < 1e-4

    with Tensor.no_grad():
        model.remember(memory, 1, *_tensors(source, mask))
        check(_logits(name, source, mask, tokens), range(1, batch + 1), range(batch))
        other = np.ascontiguousarray(source[::-1, ..., : 2 * LENGTH])
        model.remember(memory, 2, *_tensors(other[:1], None))
        rows = _logits(name, np.repeat(other[:1], batch, 0), None, tokens)
        check(rows, [2], [1])


@pytest.mark.parametrize("name", ["t5", *(pytest.param(n, marks=pytest.mark.slow) for n in NAMES[1:])])
def test_the_engine_of_generation_writes_what_transformers_writes(name: str) -> None:
    """The likeliest tokens, one after the other, for two sources of different lengths side by side."""
    reference, folder = checkpoint(name)
    model, _ = load(folder)
    source, mask = _source(name)
    wanted = 14
    start = reference.config.decoder_start_token_id
    written = np.full((len(source), 1), start)
    for _ in range(wanted):
        scores = _logits(name, source, mask, written)[:, -1]
        written = np.concatenate([written, scores.argmax(-1)[:, None]], axis=1)
    memory = model.new_memory(len(source), LENGTH)
    with Tensor.no_grad():
        model.remember(memory, 0, *_tensors(source, mask))
    engine = Engine(model.reading(memory), len(source), wanted + 1)
    sampling, needs = Sampling(), Needs()

    def first_token(slot: int) -> int:
        """A captured step writes its outputs again when it is replayed, so each is read at once."""
        (draw,) = engine.prefill(slot, [start], 0, sampling, needs)
        return int(draw.tokens.item())

    found = [[first_token(slot) for slot in range(len(source))]]
    for i in range(1, wanted):
        found.append(engine.decode(i + 1, needs).tokens.tolist())
    assert np.array(found).T.tolist() == written[:, 1:].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_the_encoder_does_not_run_again(name: str) -> None:
    model, _ = load(checkpoint(name)[1])
    memory, cache = model.new_memory(1, LENGTH), model.new_cache(1, CAPACITY)
    source, _ = _source(name)
    with Tensor.no_grad():
        model.remember(memory, 0, *_tensors(source[:1]))
        for weight in nn.state.get_parameters(model.encoder):
            weight.assign(float("nan")).realize()
        scores = model.next_logits(Tensor([[3, 4]]), TokenSpan(cache, 0, 0, 2), memory)
    assert np.isfinite(scores.numpy()).all()


def test_a_memory_in_16_bits_gives_logits_in_float32_within_2e_2() -> None:
    model, _ = load(checkpoint("t5")[1])
    source, mask = _source("t5")
    tokens = CASES["t5"].inputs()["decoder_input_ids"]
    memory = model.new_memory(3, LENGTH, "float16")
    cache = model.new_cache(3, CAPACITY, "float16")
    assert memory.keys[0].dtype.name == "float16"
    with Tensor.no_grad():
        model.remember(memory, 0, *_tensors(source, mask))
        got = model.next_logits(Tensor(tokens[1:2]), TokenSpan(cache, 1, 0, tokens.shape[1]), memory)
    assert got.dtype.name == "float32"
    expected = _logits("t5", source, mask, tokens)[1:2, -1]
    assert difference(got, torch.tensor(expected)) < 2e-2


def test_remember_says_what_does_not_fit() -> None:
    model, _ = load(checkpoint("t5")[1])
    memory = model.new_memory(2, 4)
    with Tensor.no_grad():
        with pytest.raises(ArgumentError, match="memory: expected a place for 1 sequences of 5 from slot 0"):
            model.remember(memory, 0, Tensor.ones(1, 5, dtype="int32"))
        with pytest.raises(ArgumentError, match="from slot 2 on, got 2 slots of 4"):
            model.remember(memory, 2, Tensor.ones(1, 4, dtype="int32"))
        with pytest.raises(ArgumentError, match="new_memory"):
            model.remember(
                model.encode(Tensor.ones(1, 4, dtype="int32")), 0, Tensor.ones(1, 4, dtype="int32")
            )


def test_what_is_not_written_is_not_seen() -> None:
    """A memory that is longer than the source gives the same as one that is not."""
    model, _ = load(checkpoint("t5")[1])
    tokens, source = Tensor([[5, 6, 7]]), Tensor([[8, 9, 10, 11]])
    with Tensor.no_grad():
        short = model.next_logits(tokens, TokenSpan(model.new_cache(1, 4), 0, 0, 3), model.encode(source))
        memory = model.new_memory(1, LENGTH)
        model.remember(memory, 0, Tensor.ones(1, LENGTH, dtype="int32"))
        model.remember(memory, 0, source)
        long = model.next_logits(tokens, TokenSpan(model.new_cache(1, 4), 0, 0, 3), memory)
    assert np.abs(short.numpy() - long.numpy()).max() < 1e-5 * np.abs(short.numpy()).max()
    assert memory.seen.tolist() == [[True] * 4 + [False] * (LENGTH - 4)]


def test_wrong_arguments_are_named() -> None:
    t5, whisper = load(checkpoint("t5")[1])[0], load(checkpoint("whisper")[1])[0]
    ids = Tensor.ones(1, 4, dtype="int32")
    with pytest.raises(ArgumentError, match="decoder_input_ids: expected these or labels"):
        t5.forward(ids)
    sound = Tensor.zeros(1, 8, 30)
    with pytest.raises(ArgumentError, match="decoder_input_ids: the model takes up to 20 in a row, got 21"):
        whisper.forward(sound, Tensor.ones(1, 21, dtype="int32"))
    with pytest.raises(ArgumentError, match="cache: the model takes up to 20 tokens, got a capacity of 21"):
        whisper.next_logits(ids, TokenSpan(whisper.new_cache(1, 21), 0, 0, 4), whisper.encode(sound))
    with pytest.raises(ArgumentError, match="memory: expected 2 slots, as many as the cache has, got 1"):
        t5.next_logits(ids, TokenSpan(t5.new_cache(2, 4), 0, 0, 4), t5.encode(ids))
    t5.padding_token = None
    with pytest.raises(ModelError, match="pad_token_id"):
        t5.forward(ids, labels=ids)


def test_building_and_asking_computes_nothing() -> None:
    model, _ = load(checkpoint("t5")[1])
    source = Tensor([[8, 9, 10, 11]]).realize()
    before = GlobalCounters.kernel_count
    out = model.forward(source, decoder_input_ids=source)
    assert out["logits"].shape == (1, 4, 99)
    assert GlobalCounters.kernel_count == before
