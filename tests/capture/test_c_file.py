"""Steps that are exported as C: what compilers make of them gives the results of `export.load`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_models import MODELS
from c_programs import EVERY, GCC, STRICT, Compiler, assert_close, build_and_run, expected_results

from polygrad import Device, Tensor, TinyJit, export, nn
from polygrad.capture.c_file.names import identifiers
from polygrad.capture.c_file.reference import digest
from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.export import COptions

needs_gcc = pytest.mark.skipif(bool(GCC.missing), reason="this machine has no gcc")


@pytest.fixture(autouse=True)
def default_device() -> Iterator[None]:
    before = Device.DEFAULT
    Device.DEFAULT = "CPU"
    yield
    Device.DEFAULT = before


class Saved:
    """A model's C files in a folder, and what `export.load` gives for its inputs."""

    def __init__(self, name: str, folder: Path, options: COptions) -> None:
        self.folder = folder
        Tensor.manual_seed(0)
        step, self.inputs, arguments = MODELS[name]()
        step.save(folder / "model.pgrd", **arguments)
        step.save(folder / "model.c", **arguments, c=options)
        self.model = export.load(folder / "model.pgrd", native=True)
        self.want = expected_results(self.model, self.inputs)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[tuple[str, tuple[int, ...]], Saved] = {}

    def of(name: str, vectors: tuple[int, ...]) -> Saved:
        if (name, vectors) not in made:
            options = COptions(vectors=vectors, embed=1 << 18)
            made[name, vectors] = Saved(name, tmp_path_factory.mktemp("c"), options)
        return made[name, vectors]

    return of


QUICK = ("mlp", "symbolic")


@pytest.mark.parametrize("compiler", EVERY)
@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in MODELS]
)
def test_twenty_steps_are_within_2e4_of_the_loaded_export(name: str, compiler: Compiler, saved: Any) -> None:
    s = saved(name, (16, 32, 64) if compiler.marks else (16,))
    assert_close(build_and_run(s.folder, compiler, s.model, s.inputs), s.want)


@needs_gcc
@pytest.mark.skipif(shutil.which("nm") is None, reason="this machine has no nm (binutils)")
@pytest.mark.parametrize("name", [*QUICK, pytest.param("gpt block", marks=pytest.mark.slow)])
def test_there_is_no_writable_data_and_nothing_is_allocated(name: str, saved: Any) -> None:
    """Functions begin with the file's name, and call the mathematical library and moves of memory alone."""
    folder = saved(name, (16, 32, 64)).folder
    command = ["gcc", "-std=c11", "-O2", "-c", "model.c", "-o", "model.o"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["nm", "model.o"], cwd=folder, capture_output=True, text=True, check=True)
    symbols = [line.split()[-2:] for line in done.stdout.splitlines()]
    assert [x for x in symbols if x[0] in "bBdDgGsScCuvVwW"] == []  # data that is written, shared or weak
    public = [symbol for kind, symbol in symbols if kind in "TR"]
    assert "model_run" in public and all(symbol.startswith("model_") for symbol in public)
    used = {symbol for kind, symbol in symbols if kind == "U"}
    assert used <= {"memcpy", "memset", "memcmp", "memmove", *C_MATH}, used


C_MATH = {f"{name}{kind}" for name in ("floor", "ceil", "trunc", "rint", "sqrt", "fma") for kind in ("", "f")}


@needs_gcc
def test_statuses_names_files_and_threads(tmp_path: Path) -> None:
    """A program with its own checks: errors by their statuses; threads, and state that goes on, by bits."""
    Tensor.manual_seed(0)
    layers = {"w.1": Tensor.randn(256, 256), "w_1": Tensor.randn(256), "0": Tensor.zeros(256).contiguous()}

    @TinyJit
    def step(x: Tensor) -> dict[str, Tensor]:
        layers["0"].assign(layers["0"] + x.mean(0))
        return {"for": (x @ layers["w.1"] + layers["w_1"]).relu() + layers["0"]}

    for _ in range(2):
        step(Tensor.randn(128, 256))
    options = COptions(name="net", vectors=(16,), embed=4096, threads=3)
    step.save(tmp_path / "some-model.c", {"layers": layers}, c=options)
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == ["some-model.c", "some-model.h", "some-model.safetensors"]
    assert nn.state.safe_load(tmp_path / "some-model.safetensors").keys() == {"layers.w.1"}
    (tmp_path / "main.c").write_text(STATUSES)
    command = ["gcc", "-O2", *STRICT, "some-model.c", "main.c", "-o", "program", "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["parallel", "ok", "a pointer is null"])


STATUSES = """
#include "some-model.h"
#include <stdio.h>
#include <string.h>
static uint64_t memory[NET_SELFTEST_SIZE / 8 + 1], copy[NET_STATE_SIZE / 8];
static uint64_t weights[NET_WEIGHTS_SIZE / 8 + 1];
static float x[128 * 256], y[128 * 256], again[128 * 256];
#define CHECK(status, call) \\
  do { \\
    int got = (call); \\
    if (got != (status)) return printf("line %d: %d\\n", __LINE__, got); \\
  } while (0)
static int is_parallel = 0;
static void backwards(void *context, int count, void (*task)(void *data, int number), void *data) {
  *(int *)context += count == 3;
  for (int i = count - 1; i >= 0; i--)
    task(data, i);
}
int main(void) {
  net model;
  FILE *file = fopen("some-model.safetensors", "rb");
  if (!file || fread(weights, 1, NET_WEIGHTS_SIZE, file) != NET_WEIGHTS_SIZE) return 2;
  for (int i = 0; i < 128 * 256; i++)
    x[i] = (float)(i * 7919 % 1000) / 500.0f - 1.0f;
  CHECK(NET_OK, net_selftest(memory, sizeof memory, weights, NET_WEIGHTS_SIZE));
  CHECK(NET_TOO_SMALL, net_selftest(memory, NET_SIZE, weights, NET_WEIGHTS_SIZE));
  CHECK(NET_TOO_SMALL, net_init(&model, memory, net_size() - 1, weights, NET_WEIGHTS_SIZE));
  CHECK(NET_NULL_POINTER, net_init(&model, 0, NET_SIZE, weights, NET_WEIGHTS_SIZE));
  CHECK(NET_MISALIGNED, net_init(&model, (char *)memory + 4, NET_SIZE, weights, NET_WEIGHTS_SIZE));
  CHECK(NET_WRONG_FILE, net_init(&model, memory, NET_SIZE, weights, NET_WEIGHTS_SIZE - 1));
  ((unsigned char *)weights)[20] ^= 1; /* in the header */
  CHECK(NET_WRONG_FILE, net_init(&model, memory, NET_SIZE, weights, NET_WEIGHTS_SIZE));
  ((unsigned char *)weights)[20] ^= 1;
  ((unsigned char *)weights)[NET_OFFSET_layers_w_1 + 3] ^= 64; /* a weight */
  CHECK(NET_WRONG_RESULT, net_selftest(memory, sizeof memory, weights, NET_WEIGHTS_SIZE));
  ((unsigned char *)weights)[NET_OFFSET_layers_w_1 + 3] ^= 64;
  CHECK(NET_OK, net_init(&model, memory, NET_SIZE, weights, NET_WEIGHTS_SIZE));
  net_inputs inputs = {x};
  net_outputs outputs = {y};
  CHECK(NET_NULL_POINTER, net_run(&model, 0, &outputs));
  inputs.x = (const float *)(const void *)((char *)x + 2);
  CHECK(NET_MISALIGNED, net_run(&model, &inputs, &outputs));
  inputs.x = x;
  memcpy(copy, memory, NET_STATE_SIZE);
  CHECK(NET_OK, net_run(&model, &inputs, &outputs));
  if (!memcmp(copy, memory, NET_STATE_SIZE)) return 3; /* the state has changed */
  memcpy(memory, copy, NET_STATE_SIZE);
  outputs.for_ = again;
  model.parallel_for = backwards;
  model.context = &is_parallel;
  model.threads = 99; /* at most NET_THREADS are used */
  CHECK(NET_OK, net_run(&model, &inputs, &outputs));
  puts(is_parallel ? "parallel" : "serial");
  puts(memcmp(y, again, sizeof y) ? "differs" : "ok");
  model.params.layers_w_1_2 = 0;
  puts(net_status_text(net_run(&model, &inputs, &outputs)));
  return 0;
}
"""


def test_options_are_checked(tmp_path: Path) -> None:
    for wrong in (
        {"name": 3},
        {"vectors": (8,)},
        {"vectors": [16]},
        {"embed": -1},
        {"embed": None},
        {"threads": 0},
    ):
        with pytest.raises(ArgumentError, match=f"COptions: {next(iter(wrong))}: expected"):
            COptions(**wrong)  # type: ignore[arg-type]
    step = TinyJit(lambda x: x + 1)
    for _ in range(2):
        step(Tensor([1.0]))
    with pytest.raises(ArgumentError, match=r"save: c: expected a file whose name ends in \.c, got .*\.pgrd"):
        step.save(tmp_path / "model.pgrd", c=COptions())
    for name in ("1st", "a-b", "for", "a__b"):
        with pytest.raises(ArgumentError, match="save: name: expected an identifier"):
            step.save(tmp_path / "model.c", c=COptions(name=name))
    assert list(tmp_path.iterdir()) == []


def test_widths_the_test_and_weights_are_left_out(tmp_path: Path) -> None:
    step = TinyJit(lambda x: (x * 2).exp())
    for _ in range(2):
        step(Tensor.ones(64))
    step.save(tmp_path / "model.c", c=COptions(vectors=(), selftest=False))
    text = (tmp_path / "model.c").read_text() + (tmp_path / "model.h").read_text()
    assert "selftest(" not in text and "vector_size" not in text and "VECTOR == 16" not in text
    assert "safetensors" not in text


def test_a_text_without_c_identifiers() -> None:
    assert identifiers(["a.b", "a_b", "a b", "9", "", "int", "é"]) == [
        "a_b",
        "a_b_2",
        "a_b_3",
        "t9",
        "t",
        "int_",
        "t_2",
    ]


def test_digests_know_one_zero_and_one_nan() -> None:
    a, b = (np.array(x, np.float32) for x in ([0.0, -0.0, np.nan, 1], [-0.0, 0.0, -np.nan, 1]))
    c = np.array([0, 0, np.nan, 1.0000001], np.float32)
    found = [digest(memoryview(x.tobytes()), dtypes.float32) for x in (a, b, c)]
    assert found[0] == found[1] != found[2]
    assert digest(memoryview(bytes([1, 2])), dtypes.uint8) != digest(memoryview(bytes([2, 1])), dtypes.uint8)
