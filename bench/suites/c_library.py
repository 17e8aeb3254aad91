"""libpolygrad beside the devices whose code it runs, in time of the processor.

Runs of a file by a C program (`bench/libpolygrad/run.c`) and by `polygrad.export` in this process take turns,
one thread each. The time is that of the processor, the best of the runs, so what else the machine does is not
in it. *First result* is from the call that opens the file, whose pages the system has in memory already.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from wasmtime import _ffi

from bench.hosts import CPYTHON, ROOT
from bench.minilm import CONFIG
from bench.report import Result
from polygrad import Device, Tensor, compile_step, export, hf, nn, set_num_threads
from polygrad.errors import PolygradError
from polygrad.monitor import computing
from polygrad.renderer.cstyle.c_compile import c_compiler

TOKENS = 16
TRUST_NATIVE, TRUST_DIGESTS = 1, 4  # of libpolygrad/manifest.json
RATIO, FIRST_RESULT = 0.95, 20.0  # goals; milliseconds
ROUNDS, RUNS = 8, 20


class _Network:
    def __init__(self) -> None:
        self.first, self.second, self.last = nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, 10)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.second(self.first(x).relu()).relu())


def _encoder(path: Path) -> None:
    """A model of MiniLM's shape, for one text."""
    ids = np.ones((1, TOKENS), np.int32)
    model: Any = hf.from_config(CONFIG)
    model.export(path, input_ids=ids, attention_mask=ids)


def _training(path: Path) -> None:
    """A training step of a small network."""
    model = _Network()
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), 1e-3)
    x, y = Tensor.rand(64, 784).realize(), Tensor([i % 10 for i in range(64)])
    compile_step(lambda m, x, y: m(x).cross_entropy(y), model, optimizer, x, y).save(path)


CASES: dict[str, Callable[[Path], None]] = {
    f"MiniLM, {TOKENS} tokens": _encoder,
    "training step, 784-512-512-10": _training,
}


def run(quick: bool) -> Iterator[Result]:
    """Milliseconds of a run, beside those of the device, and until the first result."""
    set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        program = _build(Path(folder))
        for case, write in CASES.items():
            for device in ("WASM", "CPU"):
                path = Path(folder) / f"{device}.pgrd"
                Device.DEFAULT = device
                write(path)
                yield from _compare(program, case, device, path, 2 if quick else ROUNDS)


def _build(folder: Path) -> Path:
    subprocess.run(["make", "-s", "-C", str(ROOT / "libpolygrad")], check=True)
    source, library = ROOT / "bench" / "libpolygrad" / "run.c", ROOT / "libpolygrad"
    out = folder / "run"
    command = [*c_compiler(), "-O2", "-std=gnu11", f"-I{library / 'include'}", str(source)]
    libraries = [str(library / "build" / "libpolygrad.a"), "-pthread", "-ldl", "-lm", "-o", str(out)]
    subprocess.run([*command, *libraries], check=True)
    return out


def _compare(program: Path, case: str, device: str, path: Path, rounds: int) -> Iterator[Result]:
    model = export.load(path, native=True)
    step = computing(lambda: model._programs.run("step", {}))
    ours, firsts, peer = [], [], []
    for _ in range(rounds):
        try:
            _, first, best = _run(program, path, TRUST_NATIVE | TRUST_DIGESTS)
        except (subprocess.CalledProcessError, PolygradError) as e:
            yield _result(case, device, None, skipped={"polygrad": str(e)[:200]})
            return
        ours.append(best)
        firsts.append(first)
        peer.append(min(_timed(step) for _ in range(RUNS)))
    value, device_time = min(ours), min(peer)
    met = device_time / value >= RATIO
    yield _result(case, device, value, {f"device {device}": device_time}, f"≥ {RATIO:g} of the device", met)
    if device == "CPU":
        first = min(firsts)
        goal = f"≤ {FIRST_RESULT:g} ms"
        yield _result(f"{case}: first result", device, first, {}, goal, first <= FIRST_RESULT)
        _, checked, _ = _run(program, path, TRUST_NATIVE)
        yield _result(f"{case}: first result, SHA-256 of all weights", device, checked, {}, "-", True)


def _run(program: Path, path: Path, flags: int) -> list[float]:
    """Milliseconds until the file is open, until the first result, and of the best run."""
    command = [program, _ffi.dll._name, str(flags), path, str(RUNS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [1e3 * float(word) for word in done.stdout.split()]


def _timed(step: Callable[[], object]) -> float:
    start = time.process_time()
    step()
    return 1e3 * (time.process_time() - start)


def _result(
    case: str,
    device: str,
    value: float | None,
    peers: dict[str, float] | None = None,
    target: str = "",
    met: bool = False,
    **rest: Any,
) -> Result:
    return Result(
        "libpolygrad", case, CPYTHON, device, value, "ms", "lower", target, met, 1, peers or {}, **rest
    )
