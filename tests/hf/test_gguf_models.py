"""GGUF files as models: the logits of the same model in float32, and errors that name file and entry."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gguf", reason="gguf, which writes the files, is not installed")
import gguf
import gguf_models
import hf_models
import transformers
from gguf_models import MODELS

from polygrad import Device, Tensor, hf, nn
from polygrad.errors import ModelError
from polygrad.hf.inspection import inspect

_IDS = hf_models.token_ids(2, 21)


def logits(instance: Any, ids: np.ndarray = _IDS) -> np.ndarray:
    with Tensor.no_grad():
        found: np.ndarray = instance.forward(input_ids=ids)["logits"].numpy()
    return found


def packed_weights(instance: Any) -> list[nn.PackedWeight]:
    places = nn.state.named_objects(instance.module)
    return [x for _, x in places if isinstance(x, nn.PackedWeight)]


@pytest.mark.parametrize("kind", ["F32", "Q8_0", "Q4_0"])
@pytest.mark.parametrize("name", MODELS)
def test_logits_within_1e_5_of_the_checkpoint_with_the_same_numbers(name: str, kind: str) -> None:
    file, folder = gguf_models.files(name, kind)
    instance = hf.load_hf(file, activations="float32")
    assert hf_models.worst(logits(instance), logits(hf.load_hf(folder))) < 1e-5
    assert instance.unused == []
    assert {w.kind.upper() for w in packed_weights(instance)} == ({kind} if kind != "F32" else set())


@pytest.mark.parametrize("name", ["llama", "gemma3", "gpt2", "mixtral"])
def test_logits_within_1e_4_of_transformers(name: str) -> None:
    file, folder = gguf_models.files(name, "Q5_1")
    expected = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    with hf_models.torch.no_grad():
        reference = expected(hf_models.torch.tensor(_IDS)).logits.numpy()
    assert hf_models.worst(logits(hf.load_hf(file)), reference) < 1e-4


def test_halves_stay_halves() -> None:
    file, folder = gguf_models.files("qwen2", "F16")
    instance = hf.load_hf(file, dtype="float32")
    assert hf_models.worst(logits(instance), logits(hf.load_hf(folder))) < 1e-5
    assert instance.module.model.layers[0].mlp.up_proj.weight.dtype == "float32"
    assert hf.load_hf(file).module.model.layers[0].mlp.up_proj.weight.dtype == "float16"


def test_memory_is_that_of_the_file() -> None:
    file, _ = gguf_models.files("llama", "Q4_0")
    instance = hf.load_hf(file)
    matrices = packed_weights(instance)
    assert sum(w.nbytes() for w in matrices) == sum(w.numel() for w in matrices) // 32 * 18


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
def test_activations_of_8_bits_are_the_default_where_bytes_are_multiplied_within_5_percent(kind: str) -> None:
    file, _ = gguf_models.files("llama", kind)
    default, exact = hf.load_hf(file), hf.load_hf(file, activations="float32")
    rounded = hf.load_hf(file, activations="int8")
    expected = logits(exact)
    assert 0 < hf_models.worst(logits(rounded), expected) < 0.05
    has_dots = any(d.a.itemsize == 1 for d in Device.backend("CPU").target.dots)
    np.testing.assert_array_equal(logits(default), logits(rounded) if has_dots else expected)


def test_tokens_are_generated_as_from_the_checkpoint() -> None:
    file, folder = gguf_models.files("llama", "Q8_0")
    prompt = [5, 9, 33, 70]
    got, expected = (
        m.generate(prompt, max_new_tokens=12, stop_tokens=[]).tokens
        for m in (
            hf.load_hf(file, max_seq_len=32, activations="float32"),
            hf.load_hf(folder, max_seq_len=32),
        )
    )
    assert got == expected and len(got) == 12


def test_text_goes_through_the_tokenizer_of_the_file() -> None:
    instance = hf.load_hf(gguf_models.files("llama", "Q8_0")[0], max_seq_len=32)
    tokens = [gguf_models.TOKENS.index(t) for t in ("hello", "\u0120world", "!")]
    assert instance.tokenizer.encode("hello world!") == tokens
    answer = instance.generate("hello world!", max_new_tokens=5, stop_tokens=[])
    assert answer.tokens == instance.generate(tokens, max_new_tokens=5, stop_tokens=[]).tokens
    assert answer.text == instance.tokenizer.decode(answer.tokens)


def test_bytes_without_a_file_system_and_metadata() -> None:
    file, _ = gguf_models.files("qwen3", "Q4_0")
    instance = hf.load_hf_bytes(None, Path(file).read_bytes())
    np.testing.assert_array_equal(logits(instance), logits(hf.load_hf(file)))
    assert instance.metadata["qwen3.block_count"] == 2
    assert instance.config.integer("eos_token_id") == 2


def test_what_is_saved_is_read_by_transformers(tmp_path: Path) -> None:
    file, _ = gguf_models.files("gemma2", "Q8_0")
    instance = hf.load_hf(file, activations="float32")
    instance.save(tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    with hf_models.torch.no_grad():
        expected = model(hf_models.torch.tensor(_IDS)).logits.numpy()
    assert hf_models.worst(logits(instance), expected) < 1e-4


@pytest.mark.parametrize("kind", ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL"])
def test_kinds_that_are_only_read_within_1e_5(tmp_path: Path, kind: str) -> None:
    """A model of random blocks, against one whose weights are the numbers of ggml's reader."""
    type_ = gguf.GGMLQuantizationType[kind]
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "qwen2")
    sizes = {"embedding_length": 256, "block_count": 1, "head_count": 4, "context_length": 64,
             "feed_forward_length": 512, "layer_norm_rms_eps": 1e-6}  # fmt: skip
    for entry, value in sizes.items():
        getattr(writer, f"add_{entry}")(value)
    rng, numbers = np.random.default_rng(0), {}
    parts = {"attn_q": (256, 256), "attn_k": (256, 256), "attn_v": (256, 256), "attn_output": (256, 256),
             "ffn_gate": (512, 256), "ffn_up": (512, 256), "ffn_down": (256, 512)}  # fmt: skip
    matrices = {"token_embd": (128, 256), "output": (128, 256)} | {f"blk.0.{k}": s for k, s in parts.items()}
    for name, (rows, columns) in matrices.items():
        blocks = gguf_models.random_blocks(kind, rows, columns, rng)
        numbers[name] = gguf.quants.dequantize(blocks, type_)
        writer.add_tensor(f"{name}.weight", blocks, raw_dtype=type_)
    for name in ("blk.0.attn_q", "blk.0.attn_k", "blk.0.attn_v"):
        writer.add_tensor(f"{name}.bias", np.zeros(256, np.float32))
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(256, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    instance, plain = (hf.load_hf(tmp_path / "model.gguf", activations="float32") for _ in range(2))
    assert {w.kind for w in packed_weights(instance)} == {kind.lower()}
    places = {f"model.layers.0.{ours}": f"blk.0.{theirs}" for ours, theirs in OURS.items()}
    places |= {"model.embed_tokens": "token_embd", "lm_head": "output"}
    for path, name in places.items():
        owner = plain.module
        for part in path.split("."):
            owner = owner[int(part)] if part.isdigit() else getattr(owner, part)
        owner.weight = Tensor(numbers[name])
    assert packed_weights(plain) == []
    assert hf_models.worst(logits(instance), logits(plain)) < 1e-5


OURS = {f"self_attn.{p}_proj": f"attn_{p}" for p in "qkv"} | {
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def changed(old: bytes, new: bytes, kind: str = "Q8_0") -> bytes:
    raw = Path(gguf_models.files("llama", kind)[0]).read_bytes()
    assert raw.count(old) == 1 and len(old) == len(new)
    return raw.replace(old, new)


def entry(name: str, value: int) -> bytes:
    """An uint32 of the metadata."""
    return name.encode() + struct.pack("<II", 4, value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"llama.block_count", b"llama.block_couns", "bad.gguf: llama.block_count: missing"),
        (
            entry("llama.block_count", 2),
            entry("llama.block_count", 3),
            r"bad.gguf: 9 tensors are missing, .* blk.2.attn_norm.weight",
        ),
        (
            entry("llama.embedding_length", 64),
            entry("llama.embedding_length", 32),
            r"bad.gguf: token_embd.weight: shape \(128, 64\), but the configuration makes it \(128, 32\)",
        ),
        (
            entry("llama.attention.head_count", 4),
            entry("llama.attention.head_count", 0),
            "llama.attention.head_count: expected an integer from 1",
        ),
        (
            entry("llama.attention.head_count", 4),
            entry("llama.attention.head_count", 5),
            "llama.attention.head_count: expected a divisor of embedding_length, 64, got 5",
        ),
        (
            b"token_embd.weight",
            b"token_embd.heavyy",
            "bad.gguf: token_embd.weight: expected a matrix, got none",
        ),
    ],
)
def test_what_is_damaged_is_named(tmp_path: Path, old: bytes, new: bytes, message: str) -> None:
    (tmp_path / "bad.gguf").write_bytes(changed(old, new))
    with pytest.raises(ModelError, match=message):
        hf.load_hf(tmp_path / "bad.gguf")


def test_files_that_end_early_and_other_files(tmp_path: Path) -> None:
    raw = Path(gguf_models.files("llama", "Q4_0")[0]).read_bytes()
    for size in (0, 3, 20, 100, len(raw) // 2, len(raw) - 40):
        (tmp_path / "bad.gguf").write_bytes(raw[:size])
        with pytest.raises(ModelError, match=r"bad.gguf: "):
            hf.load_hf(tmp_path / "bad.gguf")
    with pytest.raises(ModelError, match=r"neither a folder, a GGUF file, nor"):
        hf.load_hf(tmp_path / "none.gguf")


def test_an_unknown_architecture_lists_those_that_there_are(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ModelError, match=r"general.architecture: expected one of bert, .* got 'mamba'"):
        hf.load_hf(tmp_path / "model.gguf")


def _parts(folder: Path) -> list[Path]:
    """Copies of the parts of a model, in a folder."""
    file, _ = gguf_models.files("llama", "Q8_0", 8)
    found = sorted(Path(file).parent.glob("model-*.gguf"))
    return [Path(shutil.copy(part, folder)) for part in found]


def test_a_model_in_parts_is_the_whole_one(tmp_path: Path) -> None:
    parts = _parts(tmp_path)
    assert [p.name for p in parts] == [f"model-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    whole, _ = gguf_models.files("llama", "Q8_0")
    want = logits(hf.load_hf(whole))
    data = [p.read_bytes() for p in parts]
    for found in (hf.load_hf(parts[0]), hf.load_hf(parts[2]), hf.load_hf_bytes(None, data)):
        assert (logits(found) == want).all() and found.unused == []
        assert found.metadata["general.architecture"] == "llama"
    assert inspect(parts[1]) == inspect(whole)


def test_parts_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    parts = _parts(tmp_path)
    data = [p.read_bytes() for p in parts]
    parts[1].unlink()
    with pytest.raises(ModelError, match=r"model-00002-of-00003.gguf: missing, one of the 3 parts"):
        hf.load_hf(parts[0])
    with pytest.raises(ModelError, match=r"weights 1: split.count: expected .* there are, 1, got 3"):
        hf.load_hf_bytes(None, data[0])
    with pytest.raises(ModelError, match=r"weights 1: split.no: expected 0"):
        hf.load_hf_bytes(None, [data[1], data[0], data[2]])
    shutil.copy(parts[2], parts[1])
    with pytest.raises(ModelError, match=r"model-00002-of-00003.gguf: split.no: expected 1"):
        hf.load_hf(parts[0])


@pytest.mark.parametrize(
    ("count", "total", "names", "message"),
    [
        (2, 2, ("a", "a"), r"model-00002-of-00002.gguf: tensor 'a' is in another part"),
        (2, 3, ("a", "b"), r"model-00001-of-00002.gguf: split.tensors.count: 3, and the parts have 2"),
        (5, 2, ("a", "b"), r"model-00001-of-00002.gguf: split.count: expected .* there are, 2, got 5"),
    ],
)
def test_parts_that_contradict_one_another(
    count: int, total: int, names: tuple[str, str], message: str, tmp_path: Path
) -> None:
    for number, name in enumerate(names):
        writer = gguf.GGUFWriter(tmp_path / f"model-0000{number + 1}-of-00002.gguf", "llama")
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", count)
        writer.add_int32("split.tensors.count", total)
        writer.add_tensor(name, np.zeros(4, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    with pytest.raises(ModelError, match=message):
        hf.load_hf(tmp_path / "model-00001-of-00002.gguf")


@pytest.mark.parametrize(("pooling", "kind"), [("MEAN", "F32"), ("CLS", "Q8_0"), ("LAST", "F32")])
def test_an_encoder_gives_the_vectors_of_transformers_within_1e_5(pooling: str, kind: str) -> None:
    file, reference = gguf_models.encoder(pooling, kind)
    model: Any = hf.load_hf(file, activations="float32")
    assert isinstance(model, hf.TextEncoder) and model.unused == []
    assert {w.kind.upper() for w in packed_weights(model)} == ({kind} if kind != "F32" else set())
    ids = model.tokenizer.encode("the cats sat")
    assert ids == [2, 5, 6, 8, 7, 3]
    with hf_models.torch.no_grad():
        states = reference(hf_models.torch.tensor([ids])).last_hidden_state[0].numpy()
    want = {"MEAN": states.mean(0), "CLS": states[0], "LAST": states[-1]}[pooling]
    assert hf_models.worst(model.embed(["the cats sat"]).numpy()[0], want) < 1e-5


def test_a_pooling_that_does_not_exist_here() -> None:
    model: Any = hf.load_hf(gguf_models.encoder("RANK")[0])
    with pytest.raises(ModelError, match=r"GGUF metadata: bert.pooling_type: expected 1, the mean"):
        model.embed(["the cat"])
