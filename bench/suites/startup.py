"""How long it takes from nothing to a first result: a page's first and later visits, and Node's starts.

The work is a product of two 4 x 4 matrices. Pages are timed from the navigation, processes from their start,
both by their own clock. Every round has each library once; Pyodide as it comes, which multiplies lists, is
measured beside them, because that is what the machine allows on the day. `from script` is a later visit
without the browser's own start: the seconds from the first line of script to the product. `Pyodide alone` has
the part of the standard library that our starts read, and nothing of polygrad: no start of ours is below it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.contest import MODELS
from bench.hosts import (
    CHROMIUM,
    NODE,
    ROOT,
    TIMEOUT,
    Unavailable,
    build_javascript,
    peer_packages,
    peer_python,
)
from bench.report import Result
from polygrad import Tensor, TinyJit

FOLDER = ROOT / "bench" / "startup"
ROUNDS, QUICK_ROUNDS = 5, 1
PEERS = ("jax-js", "onnxruntime-web", "tfjs-wasm")
IN_PAGE = ("polygrad", "polygrad-worker", "polygrad-exported", "pyodide", "pyodide-alone", *PEERS)
IN_NODE = ("polygrad", "pyodide")
PRODUCT = [28.0, 16.0, 4.0, -8.0, 34.0, 18.0, 2.0, -14.0, 40.0, 20.0, 0.0, -20.0, 46.0, 22.0, -2.0, -26.0]
NOT_IN_NODE = "its WebAssembly backend is for pages"

Figures = dict[str, list[float]]  # "first", "later", "script" or "bytes" -> one figure a round


def run(quick: bool) -> Iterator[Result]:
    """Seconds, and megabytes (10⁶ bytes, Brotli) of a first visit."""
    build_javascript()
    peer_packages()
    skipped: dict[str, str] = {}
    pages: dict[str, Figures] = {}
    nodes: dict[str, Figures] = {}
    for i in range(QUICK_ROUNDS if quick else ROUNDS):
        for host, libraries, measure, found in (
            ("page", IN_PAGE, visits, pages),
            ("node", IN_NODE, starts, nodes),
        ):
            for library in libraries:
                if library in skipped:
                    continue
                print(f"startup {host} {library} {i + 1}", file=sys.stderr, flush=True)
                try:
                    measured = measure(library)
                except Unavailable as reason:
                    skipped[library] = str(reason)
                    continue
                for name, value in measured.items():
                    found.setdefault(library, {}).setdefault(name, []).append(value)
    for case, name, limit in (("first visit", "first", 1.2), ("later visit", "later", 0.6)):
        yield result(case, CHROMIUM, "polygrad", name, limit, pages, skipped)
        yield result(f"{case}, worker", CHROMIUM, "polygrad-worker", name, None, pages, skipped)
        yield result(f"{case}, exported model", CHROMIUM, "polygrad-exported", name, None, pages, skipped)
    yield result("from script, exported model", CHROMIUM, "polygrad-exported", "script", 0.1, pages, skipped)
    yield result("transfer", CHROMIUM, "polygrad", "bytes", 7, pages, skipped)
    no_peers = skipped | dict.fromkeys(PEERS, NOT_IN_NODE)
    for case, name, limit in (("first start", "first", 0.9), ("later start", "later", 0.35)):
        yield result(case, NODE, "polygrad", name, limit, nodes, no_peers)


def result(
    case: str,
    host: str,
    ours: str,
    name: str,
    limit: float | None,
    found: dict[str, Figures],
    skipped: dict[str, str],
) -> Result:
    medians = {library: median(figures[name]) for library, figures in found.items()}
    unit = "MB" if name == "bytes" else "s"
    value = medians.get(ours)
    words = [f"≤ {limit:g} {unit}"] if limit is not None else []
    for library, title in (("pyodide", "bare Pyodide"), ("pyodide-alone", "Pyodide alone")):
        if library in medians:
            words.append(f"{title} {medians[library]:.3g} {unit}")
    return Result(
        suite="startup",
        case=case,
        host=host,
        device="WASM",
        value=value,
        unit=unit,
        better="lower",
        target="; ".join(words) or "-",
        met=value is not None and (limit is None or value <= limit),
        peers={peer: medians[peer] for peer in PEERS if peer in medians},
        skipped=skipped,
    )


def visits(library: str) -> dict[str, float]:
    """A first visit with an empty profile and a later one, by a browser started anew."""
    if library == "onnxruntime-web":
        make_model()
    if library == "polygrad-exported":
        export_model()
    measured = answer(["node", str(FOLDER / "run.mjs"), library, str(MODELS)])
    seconds = {name: measured[name] for name in ("first", "later", "script")}
    return {**seconds, "bytes": measured["bytes"] / 1e6}


def starts(library: str) -> dict[str, float]:
    """A first start with an empty cache and a later one."""
    with tempfile.TemporaryDirectory(prefix="polygrad-bench-") as cache:
        first, later = (answer(["node", str(FOLDER / "node.mjs"), library, cache]) for _ in range(2))
    return {"first": first["seconds"], "later": later["seconds"]}


def answer(command: list[str]) -> dict[str, float]:
    """What a measurement prints, once it is known that it multiplied right."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, cwd=ROOT)
    if done.returncode:
        errors = done.stderr.strip().splitlines()
        raise Unavailable(errors[-1][:200] if errors else f"exit status {done.returncode}")
    measured = json.loads(done.stdout.splitlines()[-1])
    if measured["product"] != PRODUCT:
        raise Unavailable(f"expected the product {PRODUCT}, got {measured['product']}")
    return measured


def export_model() -> Path:
    """The product as an exported model."""
    path = MODELS / "matmul-4-4-4.pgrd"
    MODELS.mkdir(exist_ok=True)
    product = TinyJit(lambda a, b: {"product": a @ b})
    for _ in range(2):
        product(*(Tensor.zeros(4, 4, device="WASM").contiguous().realize() for _ in range(2)))
    product.save(path)
    return path


def make_model() -> Path:
    """onnxruntime-web's program."""
    path = MODELS / "matmul-4-4-4.onnx"
    if not path.exists():
        MODELS.mkdir(exist_ok=True)
        sizes = json.dumps({"m": 4, "k": 4, "n": 4})
        command = [str(peer_python()), "-m", "bench.onnx_models", str(path), "matmul", sizes]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(done.stderr.strip().splitlines()[-1])
    return path
