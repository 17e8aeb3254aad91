"""Run the comparison programs with one library: how many kernels each takes, and what it computes.

`python -m tests.parity.measure LIBRARY [PROGRAM...]` prints one JSON object per program. That is the
comparison's child process: tinygrad is never imported where polygrad is tested.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.parity.inputs import Inputs
from tests.parity.programs import PROGRAMS

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Output:
    """A tensor's value: its elements in row-major order."""

    dtype: str
    shape: list[int]
    values: list[float]


@dataclass(frozen=True)
class Measured:
    """Kernels launched to compute a program's outputs all at once, and the outputs."""

    name: str
    kernels: int
    outputs: list[Output]


def measure(lib: Any, name: str) -> Measured:
    """Run a program with `lib`, the module `polygrad` or `tinygrad`."""
    launched = launch_counter(lib)
    with training(lib):
        outputs = PROGRAMS[name](lib, Inputs(lib))
        before = launched()
        outputs[0].realize(*outputs[1:])
        kernels = launched() - before
    return Measured(name, kernels, [output_of(t) for t in outputs])


def output_of(tensor: Any) -> Output:
    return Output(_name(tensor.dtype), list(tensor.shape), _flat(tensor.tolist()))


def training(lib: Any) -> AbstractContextManager[Any]:
    """Training mode, which optimizers insist on; tinygrad is told by TRAINING=1 in the environment."""
    return nullcontext() if lib.__name__ == "tinygrad" else lib.Tensor.train()


@contextmanager
def optimisation(on: bool) -> Iterator[None]:
    """polygrad's optimiser on or off, whatever NOOPT says."""
    before = os.environ.get("NOOPT", "0")
    os.environ["NOOPT"] = "0" if on else "1"
    try:
        yield
    finally:
        os.environ["NOOPT"] = before


def launch_counter(lib: Any) -> Callable[[], int]:
    """A function that says how many kernels `lib` has launched so far, copies between devices not counted."""
    if lib.__name__ == "tinygrad":
        return lambda: lib.GlobalCounters.kernel_count
    stats = importlib.import_module(f"{lib.__name__}.engine.stats").stats
    return lambda: stats.launches


def measure_tinygrad(names: Iterable[str]) -> Iterator[Measured]:
    """The programs under tinygrad, in another process: on its CPU device, or without clang its Python one."""
    device = "CPU" if shutil.which("clang") else "PYTHON"
    with tempfile.TemporaryDirectory(prefix="polygrad-parity-") as empty:
        env = os.environ | {"DEV": device, "TRAINING": "1", "CACHEDB": f"{empty}/cache.db"}
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.parity.measure", "tinygrad", *names],
            cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert child.stdout is not None
        for line in child.stdout:
            fields = json.loads(line)
            yield Measured(fields["name"], fields["kernels"], [Output(**o) for o in fields["outputs"]])
        if child.wait():
            raise RuntimeError(f"tinygrad's process ended with status {child.returncode}, see above")


def _name(dtype: Any) -> str:
    """`float32`, as both libraries would say it."""
    text = str(dtype).removeprefix("dtypes.")
    return {"float": "float32", "int": "int32", "long": "int64", "uint": "uint32"}.get(text, text)


def _flat(x: Any) -> list[float]:
    return [z for y in x for z in _flat(y)] if isinstance(x, list) else [float(x)]


if __name__ == "__main__":
    library = importlib.import_module(sys.argv[1])
    importlib.import_module(f"{sys.argv[1]}.nn")
    for program in sys.argv[2:] or PROGRAMS:
        print(json.dumps(asdict(measure(library, program))), flush=True)
