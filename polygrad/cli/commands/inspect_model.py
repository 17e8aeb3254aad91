"""Says what is in a model's file or folder, and whether it runs here.

polygrad inspect model.onnx                  inputs, outputs, ops
polygrad inspect ./my-model                  architecture, sizes, tokenizer
polygrad inspect model.Q4_K_M.gguf --json    the same, as JSON
polygrad inspect model.pgrd                  device, kernels, inputs and outputs, or what it generates
polygrad inspect weights.safetensors         tensors
polygrad inspect model.pgrd --public-key signing.pub    whether this key has signed it

No weight is read, but by the digests of a .pgrd file. The exit status is 1 when the model cannot be run, and
when the key has not signed it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from polygrad.cli import descriptions
from polygrad.cli.hosts import write
from polygrad.errors import ArgumentError

NAME = "inspect"
HELP = "say what is in a model's file or folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", help="a folder of HuggingFace's kind, or a .onnx, .gguf, .safetensors or .pgrd file"
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument(
        "--public-key", metavar="KEY", help="who has to have signed a .pgrd file: RW..., or a file with that"
    )


def run(options: argparse.Namespace) -> int:
    description = _describe(Path(options.model), options.public_key)
    write(json.dumps(description.json, indent=2) if options.json else description.text)
    return 0 if description.runs else 1


def _describe(path: Path, public_key: str | None) -> descriptions.Description:
    if public_key is not None and path.suffix != ".pgrd":
        raise ArgumentError(f"--public-key: expected a .pgrd file, got {path}")
    if path.is_dir():
        return descriptions.describe_checkpoint(path)
    try:
        with open(path, "rb") as file:
            start = file.read(4)
    except OSError as e:
        raise ArgumentError(f"model: {path}: {e.strerror}") from e
    if start == b"GGUF":
        return descriptions.describe_checkpoint(path)
    if start in (b"PGRD", b"PGRB"):
        return descriptions.describe_exported(path, public_key)
    if path.suffix == ".safetensors":
        return descriptions.describe_tensors(path)
    return descriptions.describe_onnx(path)
