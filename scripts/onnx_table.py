"""docs/onnx.md: how many cases of onnx's backend test suite polygrad, onnxruntime and tinygrad compute.

    python scripts/onnx_table.py                   write the page from the recorded failures
    python scripts/onnx_table.py --check           fail if the page is not what it would write
    python scripts/onnx_table.py --record [NAME]   run the suite first: all, a package, WASM or WEBGPU

A failure of ours without a reason in tests/onnx_suite.py is an error. Recording takes a quarter of an hour a
package; tinygrad needs clang, onnxruntime's string ops the locale en_US.UTF-8.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import onnx.defs
from onnx_runners import PACKAGES, adapter, suite

from polygrad.onnx import ops
from polygrad.onnx.op_table import TABLE
from polygrad.onnx.reasons import REASONS as OP_REASONS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "onnx.md"
RECORD = ROOT / "docs" / "names" / "onnx_backend.json"
DEVICE_RECORD = ROOT / "docs" / "names" / "onnx_devices.json"
assert ops.__all__  # their import fills the table of ops
assert adapter.missing  # its import names a driver to WEBGPU

# The suite's parts, beside the node tests by family.
PARTS = {
    "simple": "Small models",
    "pytorch-converted": "PyTorch, converted",
    "pytorch-operator": "PyTorch, operators",
}
# Families of node tests, by the module of `polygrad.onnx.ops` that has the op.
FAMILIES = {
    "elementwise": "Elementwise", "activations": "Activations", "reductions": "Reductions",
    "movement": "Shapes and parts", "indexing": "Indices and sorting", "linalg": "Products",
    "convolution": "Convolutions", "pooling": "Pooling", "resize": "Resizing", "vision": "Vision",
    "normalization": "Normalisation", "attention": "Attention", "recurrent": "Recurrent layers",
    "losses": "Losses", "training": "Training", "casting": "Casts", "quantization": "Quantisation",
    "signal": "Signals", "random": "Random numbers", "control_flow": "If, Loop, Scan",
    "sequences": "Sequences, optionals", "strings": "Text", "ml": "Classic learning",
}  # fmt: skip


# --- recording


def record(package: str) -> dict[str, Any]:
    """Run the whole suite with a package: its version, and the failures of each kind with their reasons."""
    return {"version": importlib.metadata.version(package), "failed": failures(package, "CPU")}


def failures(package: str, device: str) -> dict[str, dict[str, str]]:
    """Run the whole suite on a device: the failures of each kind with their reasons."""
    failed: dict[str, dict[str, str]] = {}
    for kind in suite.KINDS:
        names = [c.name for c in suite.cases(kind)]
        found: dict[str, str | None] = {}
        while len(found) < len(names):
            found |= _results(package, device, kind, len(found))
            if len(found) < len(names):
                found[names[len(found)]] = "the process crashed"
        failed[kind] = {name: reason for name, reason in sorted(found.items()) if reason is not None}
    return failed


def _results(package: str, device: str, kind: str, first: int) -> dict[str, str | None]:
    command = [sys.executable, str(ROOT / "scripts" / "onnx_runners.py"), package, kind, str(first)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DEV": "CPU", "DEVICE": device}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith('["'))


# --- the page


@functools.cache
def _plain_cases() -> dict[str, suite.Case]:
    return {c.name: c for c in suite.cases("node")}


def family_of(case: suite.Case) -> str:
    """The family of a node test: that of the op it is about, also where a function's body stands for it."""
    plain = _plain_cases().get(case.name.partition("_expanded")[0], case)
    family = next((f for f in map(_family_of_node, reversed(plain.model.graph.node)) if f), "vision")
    return FAMILIES[family]


def _family_of_node(node: Any) -> str:
    versions = TABLE.get(("" if node.domain == "ai.onnx" else node.domain, node.op_type))
    if not versions:
        return ""
    module = next(iter(versions.values())).function.__module__
    return module.rpartition(".")[2].removesuffix("_ops")


def page() -> str:
    """The text of docs/onnx.md. Raises ValueError for a failure of ours without a reason."""
    records = json.loads(RECORD.read_text())
    unexplained = unexplained_failures(records["polygrad"]["failed"])
    if unexplained:
        raise ValueError(f"failures without a reason in tests/onnx_suite.py: {unexplained}")
    versions = {name: record["version"] for name, record in records.items()}
    names = [f"{name} {version}" for name, version in versions.items()]
    rows = list(_rows(records))
    return "\n".join(
        [
            "# ONNX models: what runs",
            "",
            "This page is made by `python scripts/onnx_table.py`. [The guide](guides/onnx.md) says how to "
            "load, train and export ONNX models.",
            "",
            "## The backend test suite",
            "",
            f"The package onnx {importlib.metadata.version('onnx')} has a test suite for whoever runs ONNX: "
            "models with inputs, and the outputs that they must have. Each number is how many of them a "
            "package computes on the CPU, with the shapes and dtypes that are asked for and within the "
            "suite's own tolerances. Tests of random numbers are judged by shape and dtype.",
            "",
            _line("", "tests", *names),
            _line("---", *["---:"] * (len(names) + 1)),
            *[_line(*map(str, row)) for row in rows],
            "",
            "Inputs of elements that numpy does not have are given to onnxruntime as values of its own or, "
            "of 2 and 4 bits, as initializers. "
            f"{_of_newest_opset(records['onnxruntime']['failed'])} of its failures are of ops in "
            f"opset {onnx.defs.onnx_opset_version()}, which the suite uses, and it does not have yet.",
            "",
            "## What fails here, and why",
            "",
            *_failures(records["polygrad"]["failed"]),
            "",
            "## On other devices",
            "",
            "The same cases by polygrad on WebAssembly, and on WebGPU with Chromium's software GPU.",
            "",
            *_devices(),
            "",
            "## Ops",
            "",
            _line("Domain", "ops", "versions of ops"),
            _line("---", "---:", "---:"),
            *[_line(*map(str, row)) for row in _domains()],
            "",
            "Not here, of the ops that the package onnx describes:",
            "",
            *[f"- `{d or 'ai.onnx'}.{n}`: {text}" for (d, n), text in sorted(OP_REASONS.items())],
            "",
        ]
    )


def unexplained_failures(failed: dict[str, dict[str, str]]) -> list[str]:
    """Failures of ours that tests/onnx_suite.py has no reason for."""
    return [n for found in failed.values() for n in found if suite.reason(n) is None]


def _devices() -> list[str]:
    """Counts by device, and what fails there beside what fails on the CPU."""
    records = json.loads(DEVICE_RECORD.read_text())
    total = sum(len(_names(kind)) for kind in suite.KINDS)
    lines = [_line("Device", "tests", "polygrad"), _line("---", "---:", "---:")]
    more: list[str] = []
    for device, failed in records.items():
        found = {name: error for errors in failed.values() for name, error in errors.items()}
        lines.append(_line(device, str(total), _with_share(total - len(found), total)))
        by_reason: dict[str, list[str]] = {}
        for name, error in found.items():
            reason = suite.reason_of_failure(name, device, error)
            if reason is None:
                raise ValueError(f"a failure on {device} without a reason in tests/onnx_suite.py: {name}")
            if suite.reason(name) is None:
                by_reason.setdefault(reason, []).append(name)
        if not by_reason:
            more.append(f"{device} fails what the CPU fails, and nothing else.")
        for reason, names in sorted(by_reason.items()):
            more.append(f"{device}: {reason}: {', '.join(f'`{n}`' for n in sorted(names))}.")
    return [*lines, "", *(f"- {text}" for text in more)]


def _rows(records: dict[str, Any]) -> Any:
    """Counts by family, then of the other parts, then of all."""
    node = {c.name: family_of(c) for c in suite.cases("node")}
    places = [("node", title) for title in FAMILIES.values()] + list(PARTS.items())
    total: Counter[str] = Counter()
    for kind, title in places:
        names = [n for n, t in node.items() if t == title] if kind == "node" else _names(kind)
        counts = {p: sum(n not in r["failed"][kind] for n in names) for p, r in records.items()}
        total.update(counts | {"": len(names)})
        if names:
            yield title, len(names), *counts.values()
        if title == list(FAMILIES.values())[-1]:
            yield "*all node tests*", total[""], *[_with_share(total[p], total[""]) for p in records]
    yield "**all**", total[""], *[_with_share(total[p], total[""]) for p in records]


def _of_newest_opset(failed: dict[str, dict[str, str]]) -> int:
    newest = f"({onnx.defs.onnx_opset_version()})"
    return sum(newest in reason for found in failed.values() for reason in found.values())


def _names(kind: str) -> list[str]:
    return [c.name for c in suite.cases(kind)]


def _with_share(count: int, whole: int) -> str:
    return f"{count} ({100 * count / whole:.1f} %)"


def _failures(failed: dict[str, dict[str, str]]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for found in failed.values():
        for name in found:
            by_reason.setdefault(suite.reason(name) or "", []).append(name)
    return [
        f"- {reason[0].upper()}{reason[1:]}: {', '.join(f'`{n}`' for n in sorted(names))}."
        for reason, names in sorted(by_reason.items())
    ]


def _domains() -> list[tuple[str, int, int]]:
    domains = sorted({domain for domain, _ in TABLE})
    return [
        (domain or "ai.onnx", len(own), sum(map(len, own)))
        for domain in domains
        for own in [[versions for (d, _), versions in TABLE.items() if d == domain]]
    ]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _keep(name: str, found: dict[str, Any], is_device: bool) -> None:
    """Write what was recorded for a package or a device into its file."""
    path, order = (DEVICE_RECORD, suite.DEVICE_REASONS) if is_device else (RECORD, PACKAGES)
    records = {**(json.loads(path.read_text()) if path.exists() else {}), name: found}
    path.write_text(json.dumps({n: records[n] for n in order if n in records}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if the page is not current")
    parser.add_argument("--record", nargs="?", const="all", metavar="NAME", help="run the suite first")
    options = parser.parse_args()
    if options.record:
        chosen = [*PACKAGES, *suite.DEVICE_REASONS] if options.record == "all" else [options.record]
        for name in chosen:
            is_device = name in suite.DEVICE_REASONS
            _keep(name, failures("polygrad", name) if is_device else record(name), is_device)
    text = page()
    if options.check:
        if PAGE.read_text() != text:
            sys.exit("docs/onnx.md is not current: run python scripts/onnx_table.py")
        return
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
