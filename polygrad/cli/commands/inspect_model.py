"""Says what is in an ONNX file: inputs, outputs, ops with their counts, sizes, and what is missing here.

The exit status is 1 when the file cannot be run.
"""

from __future__ import annotations

import argparse
import dataclasses
import json

from polygrad.cli.hosts import write
from polygrad.engine.report import table_of
from polygrad.onnx.elements import element_name
from polygrad.onnx.inspection import Inspection, inspect
from polygrad.onnx.ports import Port

NAME = "inspect"
HELP = "say what is in an ONNX file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("--json", action="store_true", help="write JSON")


def run(options: argparse.Namespace) -> int:
    found = inspect(options.model)
    write(json.dumps(json_of(found), indent=2) if options.json else text_of(found))
    return 0 if found.runs else 1


def json_of(found: Inspection) -> dict[str, object]:
    """What JSON says of it: sizes that are not known are null."""
    out = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)}
    out["initializers"] = [dataclasses.asdict(x) for x in found.initializers]
    for name in ("inputs", "outputs"):
        out[name] = [_port(p) for p in out[name]]
    return {**out, "runs": found.runs}


def _port(port: Port) -> dict[str, object]:
    element = element_name(port.element) if port.kind == "tensor" else None
    return {"name": port.name, "kind": port.kind, "element": element, "shape": port.shape}


def text_of(found: Inspection) -> str:
    """What is found, for people to read."""
    versions = ", ".join(f"{domain or 'ai.onnx'} {n}" for domain, n in found.opsets.items())
    producer = f", made by {found.producer}" if found.producer else ""
    lines = [f"ONNX, IR version {found.ir_version}, {versions}{producer}"]
    for what, ports in (("inputs", found.inputs), ("outputs", found.outputs)):
        lines += ["", f"{what}:", *(f"  {port}" for port in ports)]
    functions = f", {found.functions} functions" if found.functions else ""
    head = ("op", "count")
    lines += ["", f"{sum(found.ops.values())} nodes of {len(found.ops)} ops{functions}"]
    lines += ["", table_of(head, [(name, str(n)) for name, n in found.ops.items()])]
    if found.initializers:
        rows = [(x.element, str(x.tensors), f"{x.elements:,}", f"{x.nbytes:,}") for x in found.initializers]
        lines += ["", table_of(("initializers", "tensors", "elements", "bytes"), rows)]
    if found.external:
        lines += ["", "files of initializers: " + ", ".join(found.external)]
    if found.missing:
        lines += ["", "ops that do not exist here:", *(f"  {line}" for line in found.missing)]
    if found.problem:
        lines += ["", f"it cannot be loaded: {found.problem}"]
    return "\n".join([*lines, "", "it runs here" if found.runs else "it does not run here"])
