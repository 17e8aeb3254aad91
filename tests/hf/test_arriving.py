"""Models whose files arrive in pieces: the same weights as of the whole files, whatever the pieces are."""

from __future__ import annotations

import gc
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gguf_models
import hf_models
import numpy as np
import pytest
import safetensors.numpy
from four_bit_checkpoints import METHODS, write

from polygrad import Tensor, hf, nn
from polygrad.errors import ArgumentError, ModelError, OutOfMemoryError
from polygrad.helpers import prod
from polygrad.hf.arriving import ArrivingFile, ArrivingModel
from polygrad.hf.load import LoadOptions
from polygrad.models.fields import Fields
from polygrad.models.registry import architecture_of
from polygrad.nn.quantize import find_packable_weights
from polygrad.runtime.buffer import Allocation, run_reclaim

IDS = hf_models.token_ids(2, 9)


def logits(instance: Any) -> np.ndarray:
    with Tensor.no_grad():
        return np.asarray(instance.forward(input_ids=IDS)["logits"].numpy())


def pieces(data: bytes, longest: int, seed: int = 0) -> Iterator[bytes]:
    rng, at = random.Random(seed), 0
    while at < len(data):
        end = at + rng.randint(1, longest)
        yield data[at:end]
        at = end


def arrived(
    files: dict[str, bytes],
    weights: Sequence[tuple[str, bytes]],
    longest: int = 4096,
    knows_sizes: bool = True,
    **options: Any,
) -> Any:
    model = ArrivingModel(files, [name for name, _ in weights], LoadOptions(**options))
    if len(weights) > 1:
        for i, (_, data) in enumerate(weights):
            model.begin(i, len(data) if knows_sizes else None)
            assert any(model.feed(i, piece) for piece in pieces(data, longest))
    for i, (_, data) in enumerate(weights):
        model.begin(i, len(data) if knows_sizes else None)
        for piece in pieces(data, longest, i):
            model.feed(i, piece)
    return model.finish()


def config_of(folder: str | Path) -> dict[str, bytes]:
    return {"config.json": (Path(folder) / "config.json").read_bytes()}


def weights_of(folder: str | Path) -> bytes:
    return (Path(folder) / "model.safetensors").read_bytes()


@pytest.mark.parametrize("longest", [70, 4096, 1 << 24])
@pytest.mark.parametrize("knows_sizes", [True, False])
def test_a_safetensors_file_in_pieces_is_the_whole_one(longest: int, knows_sizes: bool) -> None:
    _, folder = hf_models.reference("llama")
    found = arrived(config_of(folder), [("model.safetensors", weights_of(folder))], longest, knows_sizes)
    assert (logits(found) == logits(hf.load_hf(folder))).all()
    assert found.unused == []


@pytest.mark.parametrize("name", ["gpt2", "phi3", "mixtral", "gemma2", "qwen3"])
def test_joined_stacked_transposed_and_tied_weights(name: str) -> None:
    _, folder = hf_models.reference(name)
    found = arrived(config_of(folder), [("model.safetensors", weights_of(folder))])
    assert (logits(found) == logits(hf.load_hf(folder))).all()


@pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"quantize": "int8"}, {"quantize": "fp8"}])
def test_options_are_those_of_load_hf(options: dict[str, Any]) -> None:
    _, folder = hf_models.reference("llama")
    found = arrived(config_of(folder), [("model.safetensors", weights_of(folder))], **options)
    assert (logits(found) == logits(hf.load_hf(folder, **options))).all()


@pytest.mark.parametrize("name", ["llama", "mixtral"])
def test_a_checkpoint_in_several_files_of_any_division(name: str, tmp_path: Path) -> None:
    _, folder = hf_models.reference(name)
    state = safetensors.numpy.load_file(Path(folder) / "model.safetensors")
    names = sorted(state)
    random.Random(1).shuffle(names)
    files = []
    for i in range(3):
        part = {n: state[n] for n in names[i::3]}
        files.append((f"model-{i}.safetensors", safetensors.numpy.save(part)))
    found = arrived(config_of(folder), files)
    assert (logits(found) == logits(hf.load_hf(folder))).all()


@pytest.mark.parametrize("method", METHODS)
def test_tensors_of_4_bits_wait_for_their_scales(tmp_path: Path, method: str) -> None:
    packed, _ = write(tmp_path, "llama", method)
    found = arrived(config_of(packed), [("model.safetensors", weights_of(packed))])
    assert (logits(found) == logits(hf.load_hf(packed))).all()


@pytest.mark.parametrize("kind", ["F32", "F16", "Q4_0", "Q8_0"])
@pytest.mark.parametrize("name", ["llama", "llama tied, biases, llama3 positions", "phi3", "gemma2"])
def test_a_gguf_file_in_pieces_is_the_whole_one(name: str, kind: str) -> None:
    file, _ = gguf_models.files(name, kind)
    found = arrived({}, [("model.gguf", Path(file).read_bytes())], 3000)
    whole = hf.load_hf_bytes(None, Path(file).read_bytes())
    assert (logits(found) == logits(whole)).all()
    assert found.metadata.keys() == whole.metadata.keys()
    places = find_packable_weights(found.module).values()
    assert any(isinstance(p.weight, nn.PackedWeight) for p in places) is kind.startswith("Q")


def test_parts_of_a_gguf_file() -> None:
    first, _ = gguf_models.files("llama", "Q8_0", 8)
    parts = [(p.name, p.read_bytes()) for p in sorted(Path(first).parent.glob("model-*.gguf"))]
    whole, _ = gguf_models.files("llama", "Q8_0")
    assert len(parts) == 3
    assert (logits(arrived({}, parts)) == logits(hf.load_hf(whole))).all()
    with pytest.raises(ModelError, match=r"split.no: expected 0"):
        arrived({}, parts[::-1])


def test_memory_is_that_of_the_weights_and_a_tensor() -> None:
    _, folder = hf_models.reference("llama")
    data = weights_of(folder)
    gc.collect()
    run_reclaim()
    model = ArrivingModel(config_of(folder), ["m"], LoadOptions(device="WASM"))
    model.begin(0, len(data))
    before, most = Allocation.allocated_bytes, 0
    for piece in pieces(data, 1000):
        model.feed(0, piece)
        most = max(most, Allocation.allocated_bytes - before)
    kept = sum(t.nbytes() for t in model.finish().weights().values())
    largest = max(t.nbytes() for t in model.finish().weights().values())
    assert kept <= most <= kept + 2 * largest


def header_of(config: dict[str, Any]) -> tuple[bytes, int]:
    """The beginning of a safetensors file of bfloat16 for a model, and the length of the whole."""
    module = architecture_of(Fields(config)).build(Fields(config))
    names = architecture_of(Fields(config)).names
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in nn.state.get_state_dict(module).items():
        shape = [int(n) for n in tensor.shape]
        start, end = end, end + 2 * prod(shape)
        header[names.apply_renames(name)] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text, 8 + len(text) + end


def test_what_does_not_fit_is_told_when_the_header_is_there() -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
    }
    header, size = header_of(config)
    files = {"config.json": json.dumps(config).encode()}
    model = ArrivingModel(files, ["m.safetensors"], LoadOptions(device="WASM"))
    model.begin(0, size)
    assert model.feed(0, header[:-1]) is False
    message = r"m.safetensors: the weights take 13\d{9} bytes, and device WASM has no room"
    with pytest.raises(OutOfMemoryError, match=message):
        model.feed(0, header[-1:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d[:-1], "m: .*safe_load: expected|m: safe_load"),
        (lambda d: b"", "m: safetensors: expected at least 8 bytes, got 0|cut short"),
        (lambda d: d[:4], "m: safetensors: the file has 4 bytes, fewer than 8"),
        (lambda d: b"\xff" * 8 + d[8:], "m: safetensors: a header of"),
        (lambda d: d[:8] + b"?" + d[9:], "m: safetensors: the JSON of the header is damaged"),
    ],
)
def test_what_is_damaged_is_named(change: Any, message: str) -> None:
    _, folder = hf_models.reference("llama")
    with pytest.raises(ModelError, match=message):
        arrived(config_of(folder), [("m", change(weights_of(folder)))])


def test_files_that_end_early_are_cut_short() -> None:
    _, folder = hf_models.reference("llama")
    data = weights_of(folder)
    file, _ = gguf_models.files("llama", "Q4_0")
    for name, whole, files in (
        ("m.safetensors", data, config_of(folder)),
        ("m.gguf", Path(file).read_bytes(), {}),
    ):
        for count in (0, 20, len(whole) // 2, len(whole) - 1):
            model = ArrivingModel(files, [name], LoadOptions())
            model.begin(0, None if count < 30 else len(whole))
            model.feed(0, whole[:count])
            with pytest.raises(ModelError, match=f"^{re.escape(name)}: the file is cut short"):
                model.finish()


def test_a_model_needs_weights() -> None:
    with pytest.raises(ArgumentError, match="at least one file, got none"):
        ArrivingModel({}, [], LoadOptions())


def begun(data: bytes) -> ArrivingFile:
    file = ArrivingFile("m")
    file.begin(len(data))
    return file


def test_empty_tensors_and_those_that_nobody_wants() -> None:
    arrays = {
        "a": np.zeros((0, 3), np.float32),
        "b": np.arange(5, dtype=np.int32),
        "c": np.zeros((2, 0), np.float16),
        "d": np.arange(4, dtype=np.float64),
        "e": np.zeros(0, np.uint8),
    }
    data = safetensors.numpy.save(arrays)
    for longest in (1, 3, 1000):
        file = begun(data)
        found = {n: t for piece in pieces(data, longest) for n, t in file.feed(piece)}
        assert file.is_complete and found.keys() == arrays.keys()
        for name, array in arrays.items():
            assert (found[name].numpy() == array.reshape(-1)).all()
    file = begun(data)
    file.wanted = {"d"}
    assert [n for piece in pieces(data, 7) for n, _ in file.feed(piece)] == ["d"]
