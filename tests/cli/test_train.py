"""`polygrad train`: what it writes, that it goes on after SIGTERM, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import transformers
import tuning_models
from tuning_models import write_texts

from polygrad import hf
from polygrad.tuning import load_adapters

QUICK = ("--epochs=4", "--batch-size=2", "--max-length=32", "--lr=0.01", "--json")


def started(tmp_path: Path, *options: str) -> subprocess.Popen[str]:
    data = write_texts(tmp_path / "texts.jsonl")
    command = [sys.executable, "-m", "polygrad", "train", "--model", str(tuning_models.folder(dropout=0.1))]
    return subprocess.Popen(
        [*command, "--data", str(data), *options],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result(tmp_path: Path, *options: str) -> dict[str, Any]:
    process = started(tmp_path, *options)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert "tokens/s" in err and "loss" in err
    found: dict[str, Any] = json.loads(out)
    return found


def test_it_writes_adapters_a_checkpoint_a_curve_and_a_merged_model(tmp_path: Path) -> None:
    merged = tmp_path / "merged"
    found = result(
        tmp_path, *QUICK, "--lora=4", "--targets=all-linear", "--validation=0.2", "--merge", str(merged),
        "--output", str(tmp_path / "out"),
    )  # fmt: skip
    assert found["is_done"] and found["losses"][-1] < found["losses"][0] and len(found["validation"]) == 4
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert names == {"adapter_config.json", "adapter_model.safetensors", "checkpoint.safetensors", "loss.svg"}
    tuned = load_adapters(hf.load_hf(tuning_models.folder()), tmp_path / "out").model
    ids = [[3, 40, 50]]
    want = tuned.forward(input_ids=ids)["logits"].numpy()
    got = hf.load_hf(merged).forward(input_ids=ids)["logits"].numpy()
    assert abs(got - want).max() < 1e-4
    assert transformers.LlamaForCausalLM.from_pretrained(merged).config.vocab_size == 320


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to send")
def test_after_sigterm_it_goes_on_to_the_last_bit(tmp_path: Path) -> None:
    options = (*QUICK, "--lora=4", "--dropout=0.1", "--epochs=40")
    whole = result(tmp_path, *options)
    process = started(tmp_path, *options, "--output", str(tmp_path / "out"))
    assert process.stderr is not None
    process.stderr.readline()  # it has begun
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 143, err
    stopped = json.loads(out)
    assert 0 < stopped["steps"] < stopped["of"]
    assert stopped["losses"] == whole["losses"][: stopped["steps"]]
    rest = result(tmp_path, *options, "--output", str(tmp_path / "out"), "--resume")
    assert rest["is_done"] and rest["losses"] == whole["losses"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--targets=q_proj",), "expected --lora"),
        (("--lora=2", "--targets=nothing"), "no Linear layer is called 'nothing'"),
        (("--resume",), "resume: expected an output folder"),
        (("--validation=no.jsonl",), "no.jsonl"),
    ],
)
def test_what_it_refuses(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    process = started(tmp_path, *QUICK, *options)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 1 and out == ""
    assert message in err and "Traceback" not in err
