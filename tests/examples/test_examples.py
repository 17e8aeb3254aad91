"""The examples run unchanged on every host: a few steps of each here, whole ones with `-m slow`.

A run ends with the same numbers wherever it runs: what it prints is compared between hosts.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import transformers
from javascript_hosts import built
from javascript_hosts import run as run_on
from served import serving

from polygrad import Tensor, Variable

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DATA = {
    "characters": "sonnets.txt",
    "convolutional": "digits.safetensors",
    "autoencoder": "digits.safetensors",
    "lora": "sonnets.txt",
    "chat": "sonnets.txt",
    "search": "sonnets.txt",
    "vision": "digits.safetensors",
    "tables": "digits.safetensors",
}
SHORT = {
    "speech": ("--epochs=1", "--sounds=32"),
    "convolutional": ("--epochs=1",),
    "autoencoder": ("--epochs=2",),
    "uncertainty": ("--epochs=3",),
    "characters": ("--steps=3", "--letters=8"),
    "lora": ("--epochs=1", "--letters=8"),
    "chat": ("--epochs=1", "--sonnets=2"),
    "search": ("--steps=3",),
    "vision": ("--epochs=1",),
    "tables": ("--epochs=2",),
}
ROOT = EXAMPLES.parent


def run(name: str, folder: Path, *arguments: str, device: str = "CPU", timeout: float = 280) -> str:
    """What an example prints, run in `folder`, on this Python."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
        cwd=folder,
        env=os.environ | {"DEVICE": device, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    assert "|████████████████████|" in done.stderr
    return done.stdout


def numbers(printed: str) -> list[float]:
    return [float(x) for x in re.findall(r"-?\d+\.\d+", printed)]


def check_picture(path: Path) -> None:
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    assert root.tag.endswith("svg") and len(list(root)) > 5


@pytest.mark.parametrize("name", SHORT)
def test_it_runs_and_draws_its_loss(name: str, tmp_path: Path) -> None:
    assert run(name, tmp_path, *SHORT[name])
    pictures = sorted(tmp_path.glob("*.svg"))
    assert tmp_path / f"{name}.svg" in pictures
    for path in pictures:
        check_picture(path)


@pytest.mark.e2e
@built
@pytest.mark.parametrize(
    "name", [n if n == "characters" else pytest.param(n, marks=pytest.mark.slow) for n in SHORT]
)
def test_in_node_it_prints_what_cpython_prints(name: str, tmp_path: Path) -> None:
    found = run_on("node", EXAMPLES / f"{name}.py", *SHORT[name], cwd=tmp_path)
    assert found.status == 0, found.err
    check_picture(tmp_path / f"{name}.svg")
    if name != "characters":  # one letter that is drawn otherwise changes all that come
        here = tmp_path / "here"
        here.mkdir()
        want = numbers(run(name, here, *SHORT[name], device="WASM"))
        assert numbers(found.out) == pytest.approx(want, abs=0.02) and want


@pytest.mark.slow
@pytest.mark.e2e
@built
@pytest.mark.parametrize("name", SHORT)
def test_it_runs_in_a_page(name: str) -> None:
    files = (EXAMPLES / "data" / DATA[name],) if name in DATA else ()
    found = run_on("chromium", EXAMPLES / f"{name}.py", *SHORT[name], files=files)
    assert found.status == 0, found.err
    assert found.out


@pytest.mark.slow
@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_the_classifier_reaches_97_percent(device: str, tmp_path: Path) -> None:
    assert numbers(run("convolutional", tmp_path, device=device))[0] > 97


@pytest.mark.slow
@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_the_autoencoder_has_a_third_of_a_mean_images_error(device: str, tmp_path: Path) -> None:
    error, of_mean = numbers(run("autoencoder", tmp_path, device=device))[-2:]
    assert error < of_mean / 3


@pytest.mark.slow
@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_the_ensemble_knows_what_it_does_not_know(device: str, tmp_path: Path) -> None:
    inside, among, gap = numbers(run("uncertainty", tmp_path, device=device))
    assert 90 < inside <= 100
    assert gap > 2 * among


@pytest.mark.slow
def test_adapters_learn_capitals_and_are_a_small_part(tmp_path: Path) -> None:
    first, last = numbers(run("lora", tmp_path))[-2:]
    assert last < first - 0.8 and last < 2.7
    assert {p.name for p in (tmp_path / "lora_adapters").iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
    }


@pytest.mark.slow
def test_the_prompter_knows_its_sonnets_and_is_served(tmp_path: Path) -> None:
    printed = run("chat", tmp_path)
    right, lines = map(int, re.findall(r"(\d+) of (\d+) lines right", printed)[0])
    assert lines == 8 * 13 and right > 0.9 * lines
    said = re.findall(r"^(?:you|model): (.*)$", printed, re.MULTILINE)
    text = (EXAMPLES / "data" / "sonnets.txt").read_text(encoding="utf-8").splitlines()
    first = text.index(said[0])
    assert said[1::2] == text[first + 1 : first + 4]  # the last two of them after "And then?"
    with serving(str(tmp_path / "chat_model")) as server:
        asked = [{"role": "user", "content": text[30]}]
        body = {"messages": asked, "max_tokens": 16, "temperature": 0}
        status, answer = server.post("/v1/chat/completions", body)
    assert status == 200 and answer["choices"][0]["message"]["content"] == text[31]


@pytest.mark.slow
def test_the_search_finds_what_parts_of_words_do_not(tmp_path: Path) -> None:
    found, by_words, by_triples = map(float, re.findall(r"([\d.]+)%", run("search", tmp_path)))
    assert found > 85 and found > by_triples + 20 and found > by_words + 20


@pytest.mark.slow
def test_the_vision_transformer_beats_the_nearest_mean(tmp_path: Path) -> None:
    found, by_means = map(float, re.findall(r"([\d.]+)%", run("vision", tmp_path)))
    assert found > 95 and found > by_means + 3
    read = transformers.ViTForImageClassification.from_pretrained(tmp_path / "digits_vit")
    assert read.config.id2label[7] == "seven" and read.num_parameters() < 80_000


@pytest.mark.slow
def test_models_for_tables_know_digits_and_prices(tmp_path: Path) -> None:
    *digits, price = numbers(run("tables", tmp_path))
    assert min(digits) > 94 and price > 0.95


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_whisper_hears_most_numbers(tmp_path: Path) -> None:
    right, sounds = re.findall(r"(\d+) of (\d+) numbers right", run("speech", tmp_path, timeout=800))[0]
    assert int(right) > int(sounds) / 2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_writer_learns_to_write(tmp_path: Path) -> None:
    printed = run("characters", tmp_path, timeout=800)
    held_out, training = numbers(printed)[:2]
    assert training < 1.8 and held_out < 2.1
    written = printed.split("\n\n", 1)[1]
    assert written.startswith("Shall I compare ") and len(written) > 400
    words = set(re.findall(r"[a-z]+", (EXAMPLES / "data" / "sonnets.txt").read_text().lower()))
    known = [w in words for w in re.findall(r"[a-z]+", written.lower())]
    assert sum(known) > len(known) / 2


@pytest.fixture(scope="module")
def characters() -> ModuleType:
    spec = importlib.util.spec_from_file_location("examples_characters", EXAMPLES / "characters.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_cache_gives_the_scores_of_the_whole_text(characters: Any) -> None:
    """rtol 1e-4: with the cache each letter is a row of attention, without it all are computed at once."""
    Tensor.manual_seed(3)
    model = characters.Writer(12)
    codes = np.random.default_rng(0).integers(0, 12, 20)
    want = model(Tensor(codes.reshape(1, -1).astype(np.int32))).numpy()[0]
    size = characters.SIZE // characters.HEADS
    caches = [
        Tensor.zeros(2, 1, characters.HEADS, characters.CONTEXT, size).contiguous().realize()
        for _ in model.blocks
    ]
    slot = Variable("slot", 0, characters.CONTEXT - 1)
    for i, code in enumerate(codes.tolist()):
        found = model.next(Tensor([[code]]), Tensor([i]), caches, slot.bind(i)).numpy()
        np.testing.assert_allclose(found, want[i], rtol=1e-4, atol=1e-4)


def test_writing_past_the_context_goes_round_in_the_cache(characters: Any) -> None:
    Tensor.manual_seed(1)
    model = characters.Writer(3)
    written = characters.write(model, ["a", "b", "c"], "ab", characters.CONTEXT + 5)
    assert len(written) == characters.CONTEXT + 7 and set(written) <= set("abc")
