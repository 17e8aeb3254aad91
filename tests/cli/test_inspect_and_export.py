"""`polygrad inspect` of checkpoints, exported models and files of tensors; `polygrad export`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import gguf_models
import numpy as np
import pytest
import tiny_text_models

from polygrad import Device, Tensor, export, hf, nn
from polygrad.cli.main import main
from polygrad.export.files import read_file


@pytest.fixture(autouse=True)
def same_device(monkeypatch):
    monkeypatch.setattr(Device, "DEFAULT", Device.DEFAULT)


def status(*arguments: str) -> int:
    return main("1.2.3", arguments)


def test_inspect_tells_a_folder_s_architecture_sizes_and_tokenizer(capsys):
    folder = tiny_text_models.talker()
    assert status("inspect", folder) == 0
    text = capsys.readouterr().out
    assert text.startswith("Qwen2ForCausalLM, for causal-lm\n") and text.endswith("it runs here\n")
    assert "a tokenizer, a chat template" in text and "max_position_embeddings: 512" in text
    assert status("inspect", folder, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    count = sum(t.numel() for t in hf.load_hf(folder).weights().values())
    assert sum(x["elements"] for x in found["tensors"]) == count and found["runs"]
    assert found["tensors"][0]["nbytes"] == 4 * count and found["unused"] == []


def test_inspect_says_why_a_checkpoint_does_not_load(capsys, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_text_models.talker(), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 9}))
    assert status("inspect", str(folder)) == 1
    assert "it cannot be loaded: model.safetensors: " in capsys.readouterr().out
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["NobodyKnows"]}))
    assert status("inspect", str(folder)) == 1
    out = capsys.readouterr().out
    assert out.startswith("NobodyKnows\n") and out.endswith("it does not run here\n")


def test_inspect_names_tensors_that_have_no_place(capsys, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_text_models.talker(), folder)
    weights = nn.state.safe_load(folder / "model.safetensors")
    nn.state.safe_save({**weights, "another.weight": Tensor.zeros(3)}, folder / "model.safetensors")
    assert status("inspect", str(folder)) == 0
    assert "1 tensors that the architecture has no place for:\n  another.weight" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
def test_inspect_counts_the_encodings_of_a_gguf_file(capsys, kind):
    path = gguf_models.files("llama", kind)[0]
    assert status("inspect", str(path), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    encodings = {x["encoding"]: x for x in found["tensors"]}
    assert found["architecture"] == "LlamaForCausalLM" and {"F32", kind} <= set(encodings)
    packed = encodings[kind]
    assert packed["nbytes"] == packed["elements"] // 32 * {"Q8_0": 34, "Q4_0": 18}[kind]


def test_inspect_lists_the_tensors_of_a_file(capsys, tmp_path):
    path = tmp_path / "w.safetensors"
    nn.state.safe_save({"a": Tensor.zeros(2, 3), "b": Tensor.zeros(4).half()}, path)
    assert status("inspect", str(path)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "a       float32  (2, 3)     24" in lines and "b       float16  (4,)        8" in lines


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_export_writes_a_file_that_computes_the_same(capsys, tmp_path, device):
    folder = tiny_text_models.classifier()[0]
    path = str(tmp_path / "model.pgrd")
    assert status("export", folder, path, "--batch", "2", "--length", "5", "--device", device) == 0
    out = capsys.readouterr().out
    assert out.startswith("inputs:\n  input_ids: int32 (2, 5)\n  attention_mask: int32 (2, 5)\noutputs:\n")
    ids, mask = np.int32([[2, 4, 5, 7, 3], [2, 4, 6, 3, 0]]), np.int32([[1] * 5, [1, 1, 1, 1, 0]])
    got = export.load(path, native=True).run(input_ids=ids, attention_mask=mask)
    expected = hf.load_hf(folder).forward(input_ids=ids, attention_mask=mask)
    np.testing.assert_allclose(got["logits"].numpy(), expected["logits"].numpy(), atol=1e-6)
    assert status("inspect", path) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"polygrad program for {device}: ") and "  input_ids: int32 (2, 5)" in text


@pytest.mark.parametrize("make", ["talker", "classifier"])
def test_export_for_several_devices_is_one_file(capsys, tmp_path, make):
    folder = getattr(tiny_text_models, make)()
    folder = folder if isinstance(folder, str) else folder[0]
    files = {device: tmp_path / f"{device}.pgrd" for device in ("CPU,WASM", "CPU", "WASM")}
    for device, path in files.items():
        assert status("export", folder, str(path), "--device", device, "--no-tokenizer") == 0
    assert "on CPU and WASM" in capsys.readouterr().out
    assert sorted(tmp_path.iterdir()) == sorted(files.values())
    load = export.load_language_model if make == "talker" else export.load_text_classifier
    for device in ("CPU", "WASM"):
        both, alone = load(files["CPU,WASM"], native=True, device=device), load(files[device], native=True)
        if make == "talker":
            assert (
                both.generate([1, 2], max_new_tokens=5).tokens
                == alone.generate([1, 2], max_new_tokens=5).tokens
            )
        else:
            assert both.classify([[1, 2, 3]]) == alone.classify([[1, 2, 3]])


C_MAIN = """
#include "encoder.h"
#include <stdio.h>
static uint64_t memory[ENCODER_SELFTEST_SIZE / 8 + 1];
static int32_t ids[16], mask[16];
int main(int count, char **tokens) {
  encoder model;
  float values[64];
  int status = encoder_selftest(memory, sizeof memory);
  for (int i = 1; i < count; i++) {
    sscanf(tokens[i], "%d", &ids[i - 1]);
    mask[i - 1] = 1;
  }
  status = status ? status : encoder_init(&model, memory, sizeof memory);
  const encoder_read16_inputs inputs = {.ids = ids, .mask = mask};
  const encoder_read16_outputs outputs = {.values = values};
  status = status ? status : encoder_read16(&model, &inputs, &outputs);
  for (int i = 0; i < 64; i++)
    printf("%.9g ", (double)values[i]);
  return status;
}
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="this machine has no gcc")
def test_export_writes_c_that_reads_texts(capsys, tmp_path):
    folder = tiny_text_models.embedder()[0]
    path = tmp_path / "encoder.c"
    assert status("export", folder, str(path), "--vectors", "16") == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        str(path),
        str(path.with_suffix(".h")),
    ]
    (tmp_path / "main.c").write_text(C_MAIN)
    command = ["gcc", "-O1", "-std=c11", "encoder.c", "main.c", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    tokens = [5, 9, 2, 7]
    done = subprocess.run(
        ["./main", *map(str, tokens)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    want = hf.load_hf(folder).embed([tokens]).numpy()[0]
    got = np.array(done.stdout.split(), np.float32)[: want.size]
    np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("x.pgrd", ("--vectors", "16"), "expected a target that ends in .c"),
        ("x.c", ("--vectors", "a"), "--vectors: expected numbers"),
        ("x.c", ("--vectors", "8"), "COptions: vectors: expected"),
    ],
)
def test_export_checks_the_options_of_c(capsys, tmp_path, target, options, message):
    assert status("export", "no-model", str(tmp_path / target), *options) == 1
    assert message in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["0"], "--threads: expected 1 to 4096, got 0"),
        (["4", "--device", "WEBGPU"], "--threads: expected device WASM, or a .c file, got WEBGPU"),
        (["4"], "expected a process that has not used WASM before"),
    ],
)
def test_export_for_threads_is_checked_before_a_model_is_loaded(capsys, tmp_path, options, message):
    Tensor([1.0], device="WASM").realize()
    target = str(tmp_path / "model.pgrd")
    assert status("export", "no-model", target, "--threads", *options) == 1
    assert message in capsys.readouterr().err and "WASM_THREADS" not in os.environ


def test_export_for_threads(tmp_path):
    """In a process of its own, as WASM is in use here. All Programs of a file import one kind of memory."""
    target = tmp_path / "model.pgrd"
    command = [sys.executable, "-m", "polygrad", "export", tiny_text_models.talker(), str(target)]
    subprocess.run([*command, "--threads", "4"], check=True, capture_output=True)
    programs = read_file(target)[0].programs
    assert {p.shared_memory for p in programs.values()} == {True}
    assert programs["prefill512"].threads == 4
    tokens = [
        model.generate([1, 2, 3], max_new_tokens=5).tokens
        for model in (export.load_language_model(target), hf.load_hf(command[4], device="WASM"))
    ]
    assert tokens[0] == tokens[1]


def test_export_to_no_folder_says_which(capsys, tmp_path):
    target = str(tmp_path / "none" / "model.pgrd")
    assert status("export", tiny_text_models.classifier()[0], target) == 1
    assert capsys.readouterr().err == f"polygrad: {target}: No such file or directory\n"


def test_export_of_no_tokens(capsys, tmp_path):
    assert status("export", tiny_text_models.talker(), str(tmp_path / "m.pgrd"), "--length", "0") == 1
    assert capsys.readouterr().err == "polygrad: length: expected at least 1, got 0\n"


def test_export_signs_a_file(tmp_path):
    public_key = export.generate_key(tmp_path / "signing.key")
    folder, *_ = tiny_text_models.embedder()
    target, of_c = str(tmp_path / "embedder.pgrd"), tmp_path / "embedder.c"
    key = ["--sign", str(tmp_path / "signing.key")]
    assert status("export", folder, target, "--length", "4", *key) == 0
    assert export.load(target, public_key=public_key).inputs
    assert status("export", folder, str(of_c), *key) == 1
    assert not of_c.exists()
