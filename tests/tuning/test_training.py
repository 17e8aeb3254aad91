"""Whole runs: they learn, resume to the last bit, and leave files that others read."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import hf_models
import numpy as np
import peft
import pytest
import torch
import transformers
import tuning_models
from tuning_models import TEXTS

from polygrad import Tensor, hf, nn
from polygrad.errors import ArgumentError, ModelError
from polygrad.tuning import Example, Report, add_lora, load_adapters, train
from polygrad.tuning.run_state import FILE

RECORDS = [{"text": t} for t in TEXTS]


def loaded(dropout: float = 0.0, **options: Any) -> Any:
    return hf.load_hf(tuning_models.folder(dropout=dropout), **options)


def run(
    output: Path | None, dropout: float = 0.0, dtype: str | None = None, lora: bool = True, **options: Any
):
    model: Any = loaded(dropout, dtype=dtype)
    Tensor.manual_seed(7)
    what = add_lora(model, rank=4, alpha=8, targets="all-linear", dropout=dropout) if lora else model
    settings = {"epochs": 3, "batch_size": 2, "max_length": 32, "lr": 1e-2, **options}
    return what, train(what, RECORDS, output=output, **settings)


def test_adapters_learn_and_peft_reads_them(tmp_path: Path) -> None:
    adapters, report = run(tmp_path, epochs=60, validation=0.25, schedule="cosine", warmup=3, lr=3e-2)
    assert report.is_done and len(report.losses) == report.steps == report.of
    assert report.losses[-1] < report.losses[0] - 0.4
    assert report.validation[-1][1] < report.validation[0][1]
    base = transformers.LlamaForCausalLM.from_pretrained(tuning_models.folder())
    judge = peft.PeftModel.from_pretrained(base, tmp_path).eval()
    ids = [[3, 40, 50, 60]]
    with torch.no_grad():
        want = judge(torch.tensor(ids)).logits.numpy()
    got = adapters.model.forward(input_ids=ids)["logits"].numpy()
    np.testing.assert_allclose(got, want, atol=1e-5 * abs(want).max())
    assert ElementTree.fromstring((tmp_path / "loss.svg").read_text()).tag.endswith("svg")
    again = load_adapters(loaded(), tmp_path)
    assert np.array_equal(again.model.forward(input_ids=ids)["logits"].numpy(), got)


def test_all_weights_learn_and_transformers_reads_them(tmp_path: Path) -> None:
    model, report = run(tmp_path, lora=False, epochs=6)
    assert report.losses[-1] < 0.7 * report.losses[0]
    judge = transformers.LlamaForCausalLM.from_pretrained(tmp_path).eval()
    ids = [[3, 40, 50, 60]]
    with torch.no_grad():
        want = judge(torch.tensor(ids)).logits.numpy()
    np.testing.assert_allclose(model.forward(input_ids=ids)["logits"].numpy(), want, atol=1e-5)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path).eos_token == "<|end|>"


def test_16_bit_weights_are_trained_by_masters(tmp_path: Path) -> None:
    model, report = run(tmp_path, lora=False, dtype="bfloat16", epochs=6)
    assert report.losses[-1] < 0.7 * report.losses[0]
    assert {t.dtype.name for t in model.weights().values()} == {"bfloat16"}
    saved = nn.state.safe_load(tmp_path / FILE)
    assert saved["optimizer.masters.0"].dtype.name == "float32"
    assert transformers.LlamaForCausalLM.from_pretrained(tmp_path).dtype is torch.bfloat16


@pytest.mark.parametrize(
    "options",
    [
        {"dropout": 0.2, "schedule": "cosine", "warmup": 2, "validation": 0.2},
        {"accumulate": 2, "packing": False, "recompute": True},
        {"lora": False, "dtype": "bfloat16"},
        {"lora": False, "accumulate": 3, "dropout": 0.1},
    ],
    ids=["dropout", "padded, accumulated", "masters", "all weights"],
)
def test_a_run_that_was_stopped_goes_on_to_the_last_bit(options: dict[str, Any], tmp_path: Path) -> None:
    _, whole = run(tmp_path / "whole", **options)
    steps = iter([False, True])
    _, half = run(tmp_path / "half", **options, should_stop=lambda: next(steps))
    assert (half.steps, half.is_done) == (2, False)
    _, rest = run(tmp_path / "half", **options, resume=True)
    assert rest.is_done and rest.losses == whole.losses and rest.validation == whole.validation
    one, other = (nn.state.safe_load(tmp_path / name / FILE) for name in ("whole", "half"))
    assert one.keys() == other.keys()
    for key, value in one.items():
        assert bytes(value.data()) == bytes(other[key].data()), key


def test_a_checkpoint_of_other_settings_or_of_nothing_is_refused(tmp_path: Path) -> None:
    run(tmp_path, epochs=1)
    with pytest.raises(ArgumentError, match=r"another lr: 0.01, not 0.02"):
        run(tmp_path, epochs=1, lr=0.02, resume=True)
    with pytest.raises(ArgumentError, match=r"no file"):
        run(tmp_path / "nowhere", resume=True)
    data = (tmp_path / FILE).read_bytes()
    other = data.replace(b'\\"validation\\": []', b'\\"validation\\": 12')
    assert other != data
    for damaged in (other, data[:-8], data[:100], b"", nn.state.safe_save({"a": Tensor([1.0])})):
        (tmp_path / FILE).write_bytes(damaged)
        with pytest.raises(ModelError, match=re.escape(FILE)):
            run(tmp_path, epochs=1, resume=True)


def test_a_finished_run_has_nothing_left(tmp_path: Path) -> None:
    _, report = run(tmp_path, epochs=1)
    _, again = run(tmp_path, epochs=1, resume=True)
    assert again.is_done and again.losses == report.losses and again.tokens == 0


def test_random_numbers_of_the_program_go_on() -> None:
    model = loaded()
    Tensor.manual_seed(3)
    want = [Tensor.rand(2).tolist(), Tensor.rand(2).tolist()]
    Tensor.manual_seed(3)
    first = Tensor.rand(2).tolist()
    train(model, RECORDS, max_length=32)
    assert [first, Tensor.rand(2).tolist()] == want


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs"),
        ({"steps": 0}, "steps"),
        ({"lr": -1.0}, "lr"),
        ({"schedule": "steps"}, "schedule"),
        ({"max_length": 65}, "max_length: expected 2 to 64"),
        ({"validation": 1.5}, "validation"),
        ({"validation": 0.001}, "leaves one side empty"),
        ({"resume": True}, "resume"),
        ({"checkpoint_every": 0}, "checkpoint_every"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        train(loaded(), RECORDS, **{"max_length": 32, **options})


def test_what_cannot_be_trained_is_named() -> None:
    model = loaded()
    add_lora(model, rank=2, alpha=4)
    with pytest.raises(ArgumentError, match="pass what add_lora returned"):
        train(model, RECORDS, max_length=32)
    with pytest.raises(ModelError, match="predicts the next token"):
        train(nn.Linear(2, 2), RECORDS)
    with pytest.raises(ArgumentError, match="at least one record"):
        train(loaded(), [], max_length=32)


def test_short_texts_are_not_packed_where_positions_depend_on_the_length_of_a_row() -> None:
    data = [Example(tuple(range(3, 13)), (-100, *range(4, 13)))]
    with pytest.raises(ArgumentError, match="rows of more than 16 tokens"):
        train(hf_models.ours("phi3, long"), data, max_length=32)
    assert train(hf_models.ours("phi3, long"), data, max_length=32, packing=False).is_done
    assert train(hf_models.ours("phi3, long"), data, max_length=16).is_done


def test_it_needs_neither_numpy_nor_torch(tmp_path: Path) -> None:
    """As inside of Pyodide; on WASM, too."""
    code = (
        "import sys\n"
        "for name in ('numpy', 'torch', 'transformers'): sys.modules[name] = None\n"
        "from pathlib import Path\n"
        "from polygrad import hf, tuning\n"
        f"folder = Path({str(tuning_models.folder())!r})\n"
        "files = {p.name: p.read_bytes() for p in folder.iterdir()}\n"
        "model = hf.load_hf_bytes(files.pop('config.json'), files.pop('model.safetensors'), files)\n"
        "adapters = tuning.add_lora(model, rank=2, alpha=4)\n"
        "report = tuning.train(adapters, [{'text': 'the cat'}], epochs=4, max_length=32)\n"
        "assert report.losses[-1] < report.losses[0], report.losses\n"
        "assert set(tuning.adapter_files(adapters)) == {'adapter_config.json', 'adapter_model.safetensors'}\n"
        "assert report.svg().startswith('<svg')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(p for p in sys.path if p), "DEVICE": "WASM", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_a_report_draws_its_losses_and_validation() -> None:
    report = Report(4, 4, [4.0, 3.0, 2.0, 1.0], [(2, 3.5), (4, 1.5)])
    assert "validation" in report.svg()
