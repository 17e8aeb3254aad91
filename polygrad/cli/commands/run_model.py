"""Runs an ONNX file: inputs come from .npy files or are written out, outputs are printed or go to .npy files.

polygrad run model.onnx --input x=image.npy --input "ids=[[1, 2, 3]]" --output y=scores.npy
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from polygrad.cli.hosts import write
from polygrad.cli.npy import from_npy, to_npy
from polygrad.errors import ArgumentError
from polygrad.nn.files import file_bytes
from polygrad.onnx.instance import load
from polygrad.tensor.tensor import Tensor

NAME = "run"
HELP = "run an ONNX file"

_MOST_PRINTED = 10  # elements of an output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file")
    place = "NAME=VALUE"
    parser.add_argument(
        "--input", action="append", default=[], metavar=place, help="an input: a .npy file, or JSON"
    )
    parser.add_argument(
        "--output", action="append", default=[], metavar="NAME=FILE", help="write an output to a .npy file"
    )
    parser.add_argument("--device", help="the device (the default one of this host)")
    parser.add_argument("--json", action="store_true", help="write the outputs, whole, as JSON")


def run(options: argparse.Namespace) -> int:
    targets = {name: Path(text) for name, text in _pairs(options.output, "--output").items()}
    model = load(options.model, device=options.device)
    inputs = {
        name: _value(text, f"--input {name}", options.device)
        for name, text in _pairs(options.input, "--input").items()
    }
    output_names = [port.name for port in model.outputs]
    for name in targets:
        if name not in output_names:
            raise ArgumentError(f"--output: expected an output of {output_names}, got {name!r}")
    results = model.forward(inputs)
    for name, path in targets.items():
        _save(results[name], name, path)
    if options.json:
        write(json.dumps({name: _plain(value) for name, value in results.items()}))
    else:
        write("\n".join(_line(name, value, targets.get(name)) for name, value in results.items()))
    return 0


def _pairs(pairs: list[str], what: str) -> dict[str, str]:
    """NAME=VALUE as a dict. Raises ArgumentError."""
    out: dict[str, str] = {}
    for text in pairs:
        name, equals, value = text.partition("=")
        if not equals or not name or name in out:
            raise ArgumentError(f"{what}: expected NAME=VALUE, each name once, got {text!r}")
        out[name] = value
    return out


def _value(text: str, what: str, device: str | None) -> Any:
    """A .npy file by its name, else JSON. Raises ArgumentError."""
    if text.endswith(".npy"):
        return from_npy(file_bytes(text, what), what, device)
    try:
        return json.loads(text)
    except ValueError as e:
        raise ArgumentError(f"{what}: expected the name of a .npy file, or JSON, got {text!r:.80}") from e


def _save(value: Any, name: str, path: Path) -> None:
    if not isinstance(value, Tensor):
        raise ArgumentError(f"--output {name}: a .npy file holds a tensor, it is {type(value).__name__}")
    try:
        path.write_bytes(to_npy(value))
    except OSError as e:
        raise ArgumentError(f"--output {name}: expected a file that can be written, got {e}") from e


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(x) for x in value]
    return value.tolist() if isinstance(value, Tensor) else value


def _line(name: str, value: Any, path: Path | None) -> str:
    if not isinstance(value, Tensor):
        return f"{name}: {str(_plain(value))[:200]}"
    head = f"{name}: {value.dtype} {tuple(value.shape)}"
    if path is not None:
        return f"{head} -> {path}"
    numbers = value.flatten()[:_MOST_PRINTED].tolist()
    return f"{head} {numbers}{' ...' if value.numel() > _MOST_PRINTED else ''}"
