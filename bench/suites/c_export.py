"""Training steps exported as C, compiled by clang with -O3 -march=native, beside device CPU on one thread.

Both are in one process and take turns; the least time of each counts. The C is called through ctypes.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polygrad
from bench.hosts import CPYTHON
from bench.models import gpt
from bench.report import Result
from polygrad import Device, Tensor, compile_step, nn, set_num_threads
from polygrad.export import COptions

_CLANG = ("clang", "-O3", "-march=native", "-std=c11", "-fPIC", "-shared")
_SHARE = 0.9  # of the speed of device CPU


class _ConvNet:
    def __init__(self) -> None:
        self.first, self.second = nn.Conv2d(1, 16, 5), nn.Conv2d(16, 32, 3)
        self.last = nn.Linear(32 * 5 * 5, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.first(x).relu().max_pool2d(2)
        return self.last(self.second(x).relu().max_pool2d(2).flatten(1))


def _gpt_block() -> tuple[Any, list[Tensor]]:
    """One block of width 256 on 4 x 64 tokens, with AdamW."""
    config = gpt.Config(layers=1, width=256, heads=4, length=64, vocabulary=256, batch=4)
    model = gpt.GPT(polygrad, config)
    for t in model.parameters:
        t.requires_grad = True
    optimizer = nn.optim.AdamW(model.parameters, lr=1e-3)
    inputs = [gpt.tokens(polygrad, config, seed) for seed in (1, 2)]
    loss = lambda _, ids, targets: model.loss(ids, targets)  # noqa: E731
    return compile_step(loss, model.parameters, optimizer, *inputs), inputs


def _convnet() -> tuple[Any, list[Tensor]]:
    """64 images of 1 x 28 x 28, with SGD."""
    model = _ConvNet()
    optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.01)
    inputs = [Tensor.randn(64, 1, 28, 28).realize(), Tensor.randint(64, low=0, high=10).realize()]
    return compile_step(lambda m, x, y: m(x).cross_entropy(y), model, optimizer, *inputs), inputs


_CASES = {"gpt block step": _gpt_block, "convnet step": _convnet}


def run(quick: bool) -> Iterator[Result]:
    for name, make in _CASES.items():
        yield _measure(name, make, 20 if quick else 200)


def _measure(name: str, make: Callable[[], tuple[Any, list[Tensor]]], rounds: int) -> Result:
    if shutil.which(_CLANG[0]) is None:
        return _result(name, None, {}, {"clang": "is not installed"})
    before = Device.DEFAULT
    Device.DEFAULT = "CPU"
    set_num_threads(1)
    try:
        Tensor.manual_seed(0)
        step, inputs = make()
        with tempfile.TemporaryDirectory() as folder:
            run_c = _compiled(Path(folder), step, inputs)
            least = _least_times([run_c, lambda: step.run(*inputs)], rounds)
    finally:
        Device.DEFAULT = before
    return _result(name, least[0] * 1e3, {"CPU": least[1] * 1e3}, {})


def _result(name: str, value: float | None, peers: dict[str, float], skipped: dict[str, str]) -> Result:
    met = value is not None and value <= peers["CPU"] / _SHARE
    target = f"≥ {_SHARE}× the speed of CPU"
    return Result("c_export", name, CPYTHON, "C", value, "ms", "lower", target, met, 1, peers, skipped)


def _compiled(folder: Path, step: Any, inputs: list[Tensor]) -> Callable[[], None]:
    """The step as C, in memory of this process."""
    step.save(folder / "model.c", c=COptions(embed=0, selftest=False))
    command = [*_CLANG, str(folder / "model.c"), "-o", str(folder / "model.so"), "-lm"]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(folder / "model.so"))
    library.model_size.restype = ctypes.c_size_t
    size = library.model_size()
    memory = _aligned(size)
    weights = (folder / "model.safetensors").read_bytes()
    kept = _aligned(len(weights))
    ctypes.memmove(kept, weights, len(weights))
    model = ctypes.create_string_buffer(1 << 16)  # the struct has pointers alone
    pointer, count = ctypes.c_void_p, ctypes.c_size_t
    status = library.model_init(model, pointer(memory), count(size), pointer(kept), count(len(weights)))
    assert status == 0, status
    data = [_aligned(t.nbytes()) for t in inputs]
    for place, t in zip(data, inputs, strict=True):
        ctypes.memmove(place, bytes(t.data()), t.nbytes())
    given = (ctypes.c_void_p * len(inputs))(*data)
    loss = ctypes.c_float()
    results = (ctypes.c_void_p * 1)(ctypes.addressof(loss))

    def call() -> None:
        status = library.model_run(model, given, results)
        assert status == 0 and loss.value == loss.value, status

    return call


_memory: list[Any] = []


def _aligned(size: int) -> int:
    """The address of memory that begins at a multiple of 64 and lives as long as the process."""
    _memory.append(ctypes.create_string_buffer(size + 64))
    return -(-ctypes.addressof(_memory[-1]) // 64) * 64


def _least_times(functions: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The least seconds of a call of each, in turns."""
    least = [float("inf")] * len(functions)
    for _ in range(rounds + 3):
        for i, function in enumerate(functions):
            start = time.process_time()
            function()
            least[i] = min(least[i], time.process_time() - start)
    return least
