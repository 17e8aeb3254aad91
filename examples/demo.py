"""Runs `digits.py`, unchanged, on every host and compares them: `make demo`.

CPython with native code, with WebAssembly (wasmtime) and on WebGPU; Pyodide in Node and in headless Chromium,
each with WebAssembly and on WebGPU. Programs in Rust, Go and R, where their compilers are, train by
the step that `export_digits.py` wrote. Prints one table; exits non-zero when a host fails, an accuracy is
under 95 % or the final losses differ by more than 1e-3. Compile caches start empty, so the compile times are
those of a first visit. Arguments go to `digits.py`: `python demo.py --epochs 10`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import wasmtime

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = [str(ROOT / "examples" / "digits.py"), "--json"]
DATA = str(ROOT / "examples" / "data" / "digits.safetensors")
MINIMUM_ACCURACY, MAXIMUM_LOSS_DIFFERENCE, TIMEOUT = 0.95, 1e-3, 600

# Host, device, how to run a Python file there. A page sees only the files it is given.
HOSTS: list[tuple[str, str, list[str]]] = [
    ("cpython", "CPU", [sys.executable]),
    ("cpython", "WASM", [sys.executable]),
    ("pyodide-node", "WASM", ["node", str(ROOT / "node" / "bin" / "polygrad-node.mjs")]),
    ("chromium", "WASM", ["node", str(ROOT / "web" / "run-in-chromium.mjs"), "--files", DATA]),
    ("cpython", "WEBGPU", [sys.executable]),
    ("pyodide-node", "WEBGPU", ["node", str(ROOT / "node" / "bin" / "polygrad-node.mjs")]),
    ("chromium", "WEBGPU", ["node", str(ROOT / "web" / "run-in-chromium.mjs"), "--files", DATA]),
]

# Programs without Python, and the tool that each needs.
LANGUAGES = [("rust", "cargo"), ("go", "go"), ("r", "R")]

# A GPU's work done by the processor: what Debian's Chromium comes with.
SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")


def vulkan_driver() -> dict[str, str]:
    """The environment's part that names a Vulkan driver, where there is no GPU and nobody names another."""
    has_gpu = any(Path("/dev").glob("dri/render*"))
    return {} if has_gpu or not SWIFTSHADER.exists() else {"VK_DRIVER_FILES": str(SWIFTSHADER)}


@dataclass(frozen=True)
class Outcome:
    """What `digits.py --json` printed on one host."""

    host: str
    device: str
    steps_per_second: float
    compile_seconds: float
    final_loss: float
    test_accuracy: float


def run(host: str, device: str, command: list[str], arguments: Sequence[str] = ()) -> Outcome | str:
    """The outcome on one host, or why there is none. Progress passes through to this terminal."""
    with tempfile.TemporaryDirectory(prefix="polygrad-demo-") as empty:
        environment = vulkan_driver() | os.environ | {"DEVICE": device, "POLYGRAD_CACHE": empty}
        return outcome_of(host, device, [*command, *PROGRAM, *arguments], environment)


def run_without_python(folder: str, arguments: Sequence[str]) -> list[tuple[str, Outcome | str]]:
    """The outcomes of the languages that are here, on what is exported to `folder`."""
    hosts = [host for host, tool in LANGUAGES if shutil.which(tool)]
    if not hosts:
        return []
    library = ROOT / "libpolygrad"
    export = [sys.executable, str(ROOT / "examples" / "export_digits.py"), folder, *arguments]
    subprocess.run(["make", "--silent", "-C", str(library)], check=True)
    subprocess.run(export, env=os.environ | {"DEVICE": "WASM"}, check=True)
    environment = os.environ | {
        "POLYGRAD_LIBRARY": str(next((library / "build").glob("libpolygrad.[sd]*"))),
        "PG_WASMTIME": str(wasmtime._ffi.dll._name),
    }
    run_sh = str(library / "bindings" / "run.sh")
    return [(host, outcome_of(host, "WASM", [run_sh, host, "digits", folder], environment)) for host in hosts]


def outcome_of(
    host: str, device: str, command: Sequence[str], environment: Mapping[str, str]
) -> Outcome | str:
    """What a command prints last, or why it does not."""
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return f"exit status {done.returncode}, see above"
    outcome = Outcome(**json.loads(lines[-1]))
    if (outcome.host, outcome.device) != (host, device):
        return f"expected {host} on {device}, it ran on {outcome.host} on {outcome.device}"
    return outcome


def table(outcomes: list[Outcome]) -> str:
    header = ("host", "device", "steps/s", "compile time", "final loss", "test accuracy")
    rows = [
        (o.host, o.device, f"{o.steps_per_second:.0f}", f"{o.compile_seconds:.2f} s")
        + (f"{o.final_loss:.6f}", f"{o.test_accuracy:.2%}")
        for o in outcomes
    ]
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [[cell.ljust(w) for cell, w in zip(row, widths, strict=True)] for row in [header, *rows]]
    lines.insert(1, ["─" * w for w in widths])
    return "\n".join("  ".join(line).rstrip() for line in lines)


def faults(outcomes: list[Outcome]) -> list[str]:
    """What the outcomes fall short of."""
    out = [
        f"{o.host} {o.device}: test accuracy {o.test_accuracy:.2%} is under {MINIMUM_ACCURACY:.0%}"
        for o in outcomes
        if not o.test_accuracy >= MINIMUM_ACCURACY
    ]
    losses = [o.final_loss for o in outcomes]
    # Every pair, so that a loss that is not a number agrees with none.
    if not all(abs(a - b) <= MAXIMUM_LOSS_DIFFERENCE for a in losses for b in losses):
        out.append(f"final losses {losses} differ by more than {MAXIMUM_LOSS_DIFFERENCE:g}")
    return out


def main() -> int:
    results = [
        (f"{host} {device}", run(host, device, command, sys.argv[1:])) for host, device, command in HOSTS
    ]
    with tempfile.TemporaryDirectory(prefix="polygrad-demo-") as folder:
        results += run_without_python(folder, sys.argv[1:])
    outcomes = [result for _, result in results if isinstance(result, Outcome)]
    problems = [f"{name}: {result}" for name, result in results if isinstance(result, str)]
    print(f"\n{table(outcomes)}\n")
    problems += faults(outcomes)
    for problem in problems:
        print(f"FAILED {problem}")
    if not problems:
        print(f"{len(outcomes)} hosts agree.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
