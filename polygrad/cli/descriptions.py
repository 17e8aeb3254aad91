"""Descriptions of each kind of file by `polygrad inspect`, as text and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polygrad.dtype import to_dtype
from polygrad.engine.report import table_of
from polygrad.export.files import read_file, read_source
from polygrad.export.signing import check_signature, find_signature
from polygrad.helpers import prod
from polygrad.hf import inspection as checkpoints
from polygrad.hf.checkpoint import map_file
from polygrad.hf.tokenizer_export import FILE as TOKENIZER
from polygrad.nn.safetensors import read_entries
from polygrad.onnx import inspection as onnx_files
from polygrad.onnx.elements import element_name
from polygrad.onnx.ports import Port
from polygrad.runtime.bundle import STEP, Bundle

KEPT = ("param", "state")


@dataclass(frozen=True, slots=True)
class Description:
    """`runs`: whether polygrad can run the described file."""

    text: str
    json: dict[str, Any]
    runs: bool = True


# --- checkpoints


def describe_checkpoint(path: Path) -> Description:
    """Of a folder, or a GGUF file. Raises ModelError."""
    inspection = checkpoints.inspect(path)
    lines = [
        f"{inspection.architecture}, for {inspection.task}" if inspection.task else inspection.architecture
    ]
    lines += ["", *(f"  {name}: {value:,}" for name, value in inspection.sizes.items())]
    counts = [(x.encoding, x.tensors, x.elements, x.nbytes) for x in inspection.tensors]
    lines += ["", _counts_table("weights", counts)]
    tokenizer = "a tokenizer" if inspection.has_tokenizer else "no tokenizer"
    template = "a chat template" if inspection.has_chat_template else "no chat template"
    lines += ["", f"{tokenizer}, {template}"]
    if inspection.unused:
        lines += ["", f"{len(inspection.unused)} tensors that the architecture has no place for:"]
        lines += [f"  {name}" for name in inspection.unused[:20]]
        lines += ["  ..."] if len(inspection.unused) > 20 else []
    if inspection.problem:
        lines += ["", f"it cannot be loaded: {inspection.problem}"]
    return Description(
        _with_status(lines, inspection.runs),
        {**dataclasses.asdict(inspection), "runs": inspection.runs},
        inspection.runs,
    )


# --- ONNX files


def describe_onnx(path: Path) -> Description:
    """Raises OnnxError."""
    inspection = onnx_files.inspect(path)
    versions = ", ".join(f"{domain or 'ai.onnx'} {n}" for domain, n in inspection.opsets.items())
    producer = f", made by {inspection.producer}" if inspection.producer else ""
    lines = [f"ONNX, IR version {inspection.ir_version}, {versions}{producer}"]
    for heading, ports in (("inputs", inspection.inputs), ("outputs", inspection.outputs)):
        lines += ["", f"{heading}:", *(f"  {port}" for port in ports)]
    functions = f", {inspection.functions} functions" if inspection.functions else ""
    lines += ["", f"{sum(inspection.ops.values())} nodes of {len(inspection.ops)} ops{functions}"]
    lines += ["", table_of(("op", "count"), [(name, str(n)) for name, n in inspection.ops.items()])]
    if inspection.initializers:
        counts = [(x.element, x.tensors, x.elements, x.nbytes) for x in inspection.initializers]
        lines += ["", _counts_table("initializers", counts)]
    if inspection.external:
        lines += ["", "files of initializers: " + ", ".join(inspection.external)]
    if inspection.missing:
        lines += ["", "ops that do not exist here:", *(f"  {line}" for line in inspection.missing)]
    if inspection.problem:
        lines += ["", f"it cannot be loaded: {inspection.problem}"]
    return Description(_with_status(lines, inspection.runs), _onnx_json(inspection), inspection.runs)


def _onnx_json(inspection: onnx_files.Inspection) -> dict[str, Any]:
    """Sizes that are not known are null."""
    out: dict[str, Any] = {f.name: getattr(inspection, f.name) for f in dataclasses.fields(inspection)}
    out["initializers"] = [dataclasses.asdict(x) for x in inspection.initializers]
    for name in ("inputs", "outputs"):
        out[name] = [_port(p) for p in out[name]]
    return {**out, "runs": inspection.runs}


def _port(port: Port) -> dict[str, object]:
    element = element_name(port.element) if port.kind == "tensor" else None
    return {"name": port.name, "kind": port.kind, "element": element, "shape": port.shape}


# --- exported models, files of tensors


def describe_exported(path: str | Path, public_key: str | None = None) -> Description:
    """Of a .pgrd file, which `public_key` has to have signed if it is given. Raises ProgramError and
    SignatureError."""
    data = read_source(path)
    signature = find_signature(path) if public_key is None else check_signature(path, data, public_key)
    bundle, values = read_file(data)
    described = _describe_step(bundle, values) if bundle.kind == STEP else _describe_bundle(bundle, values)
    fields: dict[str, Any] | None = None
    line = "not signed"
    if signature is not None:
        comment = signature.comment.decode(errors="replace")
        fields = {"key": signature.key_name, "comment": comment, "verified": public_key is not None}
        state = "not verified: give --public-key" if public_key is None else f"verified: {comment}"
        line = f"signed by key {signature.key_name}, {state}"
    return Description(f"{described.text}\n\n{line}", {**described.json, "signature": fields})


def _describe_step(bundle: Bundle, values: memoryview) -> Description:
    program = bundle.programs[STEP]
    roles = {
        role: [(b.name, b.dtype, list(b.shape or ())) for b in program.buffers if b.role == role]
        for role in ("input", "output", "param", "state")
    }
    code = sum(len(kernel.code) for kernel in program.kernels)
    fields = {
        "devices": list(bundle.devices),
        "target": program.target,
        "kernels": len(program.kernels),
        "launches": len(program.launches),
        "code_bytes": code,
        "weight_bytes": len(values),
        "scratch_bytes": program.arena,
        "variables": {v.name: [v.lo, v.hi] for v in program.variables},
        **{role + "s": [dict(zip(("name", "dtype", "shape"), x)) for x in xs] for role, xs in roles.items()},
    }
    lines = [f"polygrad program for {' and '.join(bundle.devices)}: {len(program.launches)} launches of "
             f"{len(program.kernels)} kernels"]  # fmt: skip
    for role, heading in (("input", "inputs"), ("output", "outputs"), ("state", "state")):
        specs = [f"  {name}: {dtype} {tuple(shape)}" for name, dtype, shape in roles[role]]
        lines += ["", f"{heading}:", *specs] if specs else []
    if program.variables:
        lines += ["", "sizes:", *(f"  {v.name}: {v.lo} to {v.hi}" for v in program.variables)]
    sizes = [("code", code), ("weights", len(values)), ("scratch", program.arena)]
    lines += ["", table_of(("", "bytes"), [(name, f"{n:,}") for name, n in sizes])]
    return Description("\n".join(lines), fields)


def _describe_bundle(bundle: Bundle, values: memoryview) -> Description:
    programs = [program for target in bundle.targets for program in target.values()]
    code = sum(len(program.to_bytes()) for program in programs)
    held = {
        b.name: b.size * to_dtype(b.dtype).itemsize for p in programs for b in p.buffers if b.role in KEPT
    }
    zeros = sum(held[name] for name in bundle.zeros)
    arena = max(program.arena for program in programs)
    fields = {
        "kind": bundle.kind,
        "devices": list(bundle.devices),
        "programs": list(bundle.programs),
        "files": {name: len(contents) for name, contents in bundle.files.items()},
        "settings": dict(bundle.settings),
        "code_bytes": code,
        "weight_bytes": len(values),
        "state_bytes": zeros,
        "scratch_bytes": arena,
    }
    lines = [f"polygrad model for {bundle.kind} on {' and '.join(bundle.devices)}: "
             f"{len(bundle.programs)} Programs", ""]  # fmt: skip
    settings = {k: v for k, v in bundle.settings.items() if isinstance(v, (int, float, str))}
    lines += [f"  {name}: {value:,}" for name, value in settings.items()]
    lines += [f"  {name}" for name in bundle.files]
    lines += [] if TOKENIZER in bundle.files else ["  no tokenizer: tokens in, tokens out"]
    sizes = [("programs", code), ("weights", len(values)), ("cache and state", zeros), ("scratch", arena)]
    lines += ["", table_of(("", "bytes"), [(name, f"{n:,}") for name, n in sizes])]
    return Description("\n".join(lines), fields)


def describe_tensors(path: Path) -> Description:
    """Of a safetensors file. Raises ArgumentError."""
    entries = read_entries(map_file(path))
    rows = [(name, e.dtype.name, str(tuple(e.shape)), f"{len(e.data):,}") for name, e in entries.items()]
    counts: dict[str, tuple[int, int, int]] = {}
    for e in entries.values():
        n, elements, nbytes = counts.get(e.dtype.name, (0, 0, 0))
        counts[e.dtype.name] = n + 1, elements + prod(e.shape), nbytes + len(e.data)
    table = _counts_table("tensors", [(name, *numbers) for name, numbers in sorted(counts.items())])
    text = "\n\n".join([table_of(("tensor", "dtype", "shape", "bytes"), rows, left=3), table])
    tensors = [{"name": n, "dtype": e.dtype.name, "shape": list(e.shape)} for n, e in entries.items()]
    return Description(text, {"tensors": tensors})


def describe_ports(path: str) -> str:
    """The inputs and outputs of a .pgrd file. Raises ProgramError."""
    program = read_file(map_file(Path(path)))[0].programs[STEP]
    lines = []
    for role in ("input", "output"):
        specs = [b for b in program.buffers if b.role == role]
        lines += [f"{role}s:", *(f"  {b.name}: {b.dtype} {b.shape}" for b in specs)]
    return "\n".join(lines)


# --- common parts


def _counts_table(what: str, counts: Iterable[tuple[str, int, int, int]]) -> str:
    """Of each encoding how many tensors, elements and bytes."""
    rows = [(name, str(n), f"{elements:,}", f"{nbytes:,}") for name, n, elements, nbytes in counts]
    return table_of((what, "tensors", "elements", "bytes"), rows)


def _with_status(lines: list[str], is_runnable: bool) -> str:
    return "\n".join([*lines, "", "it runs here" if is_runnable else "it does not run here"])
