"""Second names of arguments: torch's and numpy's words mean what the first names do, in all methods."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polygrad import Tensor
from polygrad.errors import ArgumentError
from polygrad.tensor.core.argument_names import with_first_names

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
script: Any = __import__("second_names")
METHODS = script.methods()
PAIRS = [
    (m, second) for m, member in METHODS.items() for second in script.second_names(script.function_of(member))
]

A = np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32)
# As torch's users and numpy's write it.
TORCHS = [
    lambda x: x.sum(dim=0), lambda x: x.sum(dim=(0, 1), keepdim=True), lambda x: x.mean(dim=1, keepdim=True),
    lambda x: x.softmax(dim=1), lambda x: x.log_softmax(dim=0), lambda x: x.cumsum(dim=1),
    lambda x: x.var(dim=0, unbiased=False), lambda x: x.std(dim=1, unbiased=True),
    lambda x: x.flip(dims=(0,)),
    lambda x: x.permute(dims=(1, 0)), lambda x: x.clamp(min=0), lambda x: x.clamp(max=0.5, min=-0.5),
    lambda x: x.split(split_size=2, dim=1)[1], lambda x: x.topk(2, dim=1, sorted=True)[0],
    lambda x: x.argmax(dim=0).int(), lambda x: x.logsumexp(dim=1), lambda x: x.roll(shifts=1, dims=0),
    lambda x: x.triu(diagonal=1), lambda x: x.reshape(shape=(4, 3)), lambda x: x.add(other=2),
    lambda x: x.mul(other=x), lambda x: x.amax(dim=1), lambda x: x.cumprod(dim=0),
    lambda x: x.expand(size=(2, 3, 4)), lambda x: x.gather(dim=0, index=(x[:1] * 0).long()),
]  # fmt: skip
NUMPYS = [
    (lambda x: x.sum(axis=0, keepdims=True), lambda x: x.sum(axis=0, keepdims=True)),
    (lambda x: x.std(axis=1, ddof=0), lambda x: x.std(axis=1, ddof=0)),
    (lambda x: x.clip(min=0.0), lambda x: x.clip(min=0.0)),
    (lambda x: x.permute(axes=(1, 0)), lambda x: np.transpose(x, axes=(1, 0))),
    (lambda x: x.squeeze(axis=0) if x.shape[0] == 1 else x, lambda x: x),
    (lambda x: x.triu(k=1), lambda x: np.triu(x, k=1)),
    (lambda x: Tensor.stack(x, x, axis=1), lambda x: np.stack([x, x], axis=1)),
    (lambda x: Tensor.cat(x, x, axis=1), lambda x: np.concatenate([x, x], axis=1)),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(TORCHS)))
def test_torchs_words(i: int) -> None:
    np.testing.assert_allclose(
        TORCHS[i](Tensor(A)).numpy(), TORCHS[i](torch.tensor(A)).numpy(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("i", range(len(NUMPYS)))
def test_numpys_words(i: int) -> None:
    ours, theirs = NUMPYS[i]
    np.testing.assert_allclose(ours(Tensor(A)).numpy(), theirs(A), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("method", "second"), PAIRS)
def test_a_second_name_stands_for_one_that_the_method_has(method: str, second: str) -> None:
    function = script.function_of(METHODS[method])
    value = True if second == "unbiased" else 1
    (first,) = with_first_names(function, {second: value})
    assert first in inspect.signature(function).parameters
    with pytest.raises(ArgumentError, match=f"expected one of {first}= and {second}=, got both"):
        with_first_names(function, {first: value, second: value})


def test_there_are_many() -> None:
    assert len(PAIRS) > 150 and len(METHODS) > 80


def test_what_is_no_name_is_refused_and_errors_of_the_call_stay() -> None:
    x = Tensor(A)
    with pytest.raises(ArgumentError, match="expected arguments axis, keepdim, dtype, got colour="):
        x.sum(dim=0, colour=1)
    with pytest.raises(ArgumentError, match="got both"):
        x.sum(axis=0, dim=1)
    with pytest.raises(IndexError):
        x.sum(dim=5)


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="there is no ruff, which sorts imports")
def test_the_stub_is_what_the_script_writes() -> None:
    assert script.STUB.read_text(encoding="utf-8") == script.written(), "run scripts/second_names.py"


@pytest.mark.slow
def test_type_checkers_know_them(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "from polygrad import Tensor\nx = Tensor([[1.0]])\n"
        "y: Tensor = x.sum(dim=0, keepdims=True)\nz: Tensor = x.clamp(min=0)\nx.sum(colour=1)\n"
    )
    command = [sys.executable, "-m", "mypy", "--no-incremental", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1 and "program.py:5" in errors[0] and "colour" in errors[0], done.stdout
