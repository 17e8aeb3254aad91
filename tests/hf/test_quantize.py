"""`quantize` of loading and of Instances: which weights are packed, what that costs, and what is saved."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gguf", reason="gguf, with which models in 32s of numbers are written, is not installed")
import gguf_models
import hf_models
import safetensors.numpy
import torch
import transformers

from polygrad import Tensor, hf, nn
from polygrad.errors import ArgumentError
from polygrad.nn.quantization import KINDS

_IDS = hf_models.token_ids(2, 21)
PACKED = [name for name, kind in KINDS.items() if kind.pack is not None]


def ours(name: str, **options: Any) -> Any:
    """A model whose rows are blocks of 32 numbers."""
    return hf.load_hf(folder(name), **options)


def folder(name: str) -> str:
    return gguf_models.files(name, "F32")[1]


def logits(instance: Any) -> np.ndarray:
    with Tensor.no_grad():
        found: np.ndarray = instance.forward(input_ids=_IDS)["logits"].numpy()
    return found


def packed(instance: Any) -> dict[str, nn.PackedWeight]:
    objects = nn.state.named_objects(instance.module)
    return {name: x for name, x in objects if isinstance(x, nn.PackedWeight)}


def unpacked(instance: Any) -> Any:
    """The instance with the numbers of its packed weights as floats."""
    for _, owner in list(nn.state.named_objects(instance.module)):
        for name, value in list(vars(owner).items()):
            if isinstance(value, nn.PackedWeight):
                setattr(owner, name, value.dense().contiguous())
    assert not packed(instance)
    return instance


@pytest.mark.parametrize("kind", PACKED)
def test_loading_packs_what_an_instance_packs(kind: str) -> None:
    name = "llama tied, biases, llama3 positions"
    loaded, instance = ours(name, quantize=kind, activations="float32"), ours(name)
    before = logits(instance)
    instance.quantize(kind, activations="float32")
    got = logits(loaded)
    np.testing.assert_array_equal(got, logits(instance))
    assert packed(loaded).keys() == packed(instance).keys() and len(packed(loaded)) == 1 + 2 * 7
    assert 1e-4 < hf_models.worst(got, before) < 0.8
    assert hf_models.worst(got, logits(unpacked(loaded))) < 1e-5


@pytest.mark.parametrize("name", ["gpt2", "phi3", "gemma3", "qwen3 experts", "mixtral"])
def test_families_with_other_layouts_within_1e_5_of_the_same_numbers_as_floats(name: str) -> None:
    instance, originals = ours(name, quantize="int8", activations="float32"), ours(name).weights()
    weights = packed(instance)
    assert not any("router" in n for n in weights) and any("down_proj" in n for n in weights)
    for own, weight in weights.items():
        original = originals[own].numpy()
        assert weight.shape == original.shape
        assert abs(weight.dense().numpy() - original).max() <= abs(original).max() / 250
    got = logits(instance)
    assert hf_models.worst(got, logits(unpacked(instance))) < 1e-5


def test_tokens_are_the_same_before_and_after_packing_what_was_generated_with() -> None:
    instance = ours("llama", max_seq_len=32)
    options: dict[str, Any] = {"max_new_tokens": 8, "stop_tokens": []}
    instance.generate([5, 9, 33], **options)
    instance.quantize("q8_0")
    expected = ours("llama", max_seq_len=32, quantize="q8_0").generate([5, 9, 33], **options)
    assert instance.generate([5, 9, 33], **options).tokens == expected.tokens


def test_a_step_of_training_goes_through_packed_weights() -> None:
    instance = ours("qwen2", quantize="q8_0")
    instance.optimizer = nn.optim.AdamW(nn.state.get_parameters(instance.module), lr=1e-2)
    before = {name: w.bits.numpy() for name, w in packed(instance).items()}
    losses = [instance.train_step(input_ids=_IDS, labels=_IDS).item() for _ in range(4)]
    assert losses[-1] < losses[0]
    for name, w in packed(instance).items():
        np.testing.assert_array_equal(w.bits.numpy(), before[name])


# Prints the bytes that loading took, with what was freed and is kept for reuse, and those of packed weights.
LOAD = """
import sys
from polygrad import GlobalCounters, hf, nn
start = GlobalCounters.mem_used
instance = hf.load_hf(sys.argv[1], quantize="q4_0")
places = [getattr(x, "weight", None) for layer in instance.module.model.layers
          for x in [*vars(layer.self_attn).values(), *vars(layer.mlp).values()]]
packed = [w for w in places if isinstance(w, nn.PackedWeight)]
print(GlobalCounters.mem_used - start, sum(w.nbytes() for w in packed), sum(w.numel() for w in packed))
"""


def test_memory_peaks_at_the_packed_model_and_one_weight(tmp_path: Path) -> None:
    """In a process of its own, whose memory is not what other tests left."""
    config = transformers.LlamaConfig(
        vocab_size=128, hidden_size=256, intermediate_size=512, num_hidden_layers=6, num_attention_heads=4
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", LOAD, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    used, nbytes, count = map(int, done.stdout.split())
    largest = 4 * 512 * 256
    assert count * 4 >= 30 * largest
    # beside the layers: the embedding, the scores and the norms
    assert used < nbytes + 3 * largest


def test_what_is_saved_is_read_by_transformers_and_by_us(tmp_path: Path) -> None:
    instance = ours("mixtral", quantize="q8_0", activations="float32")
    instance.save(tmp_path)
    state = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    original = safetensors.numpy.load_file(Path(folder("mixtral")) / "model.safetensors")
    assert {k: v.shape for k, v in state.items()} == {k: v.shape for k, v in original.items()}
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        expected = model(torch.tensor(_IDS)).logits.numpy()
    assert hf_models.worst(logits(instance), expected) < 1e-5
    assert hf_models.worst(logits(hf.load_hf(tmp_path)), expected) < 1e-5


def test_an_exported_model_has_the_packed_weights(tmp_path: Path) -> None:
    instance = ours("llama", quantize="q4_0")
    ids = Tensor(_IDS.astype(np.int32))
    instance.export(tmp_path / "packed.pgrd", input_ids=ids)
    ours("llama").export(tmp_path / "plain.pgrd", input_ids=ids)
    sizes = [(tmp_path / f"{name}.pgrd").stat().st_size for name in ("packed", "plain")]
    floats = sum(t.numel() * 4 for t in ours("llama").weights().values())
    assert sizes[0] < sizes[1] - floats * 0.7


def test_kinds_and_weights_that_do_not_fit_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"expected one of int8, int4, .*, got '4bit'"):
        ours("llama", quantize="4bit")
    with pytest.raises(ArgumentError, match=r"q6_k is only read from files: expected one of int8"):
        ours("llama", quantize="q6_k")
    with pytest.raises(
        ArgumentError, match=r"down_proj.weight: int4 has blocks of 32 .* 48.*skip='.*down_proj'"
    ):
        hf_models.ours("llama", quantize="int4")
