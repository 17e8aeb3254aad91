"""Writes an ONNX model as a .pgrd file, which runs without its Python, and without any on WASM and WEBGPU.

polygrad convert model.onnx model.pgrd --size batch=1 --size length=1:512 --device WASM
"""

from __future__ import annotations

import argparse

from polygrad.cli.descriptions import describe_ports
from polygrad.cli.hosts import write
from polygrad.errors import ArgumentError
from polygrad.onnx.instance import load

NAME = "convert"
HELP = "write an ONNX model as a .pgrd file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("target", help="the .pgrd file to write")
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=N or NAME=LEAST:MOST",
        help="what a symbolic size of the inputs is, or from where to where it goes",
    )
    parser.add_argument("--device", help="the device that the file is for (the default one of this host)")


def run(options: argparse.Namespace) -> int:
    bounds = dict(map(_bounds, options.size))
    load(options.model, device=options.device).export(options.target, **bounds)
    write(describe_ports(options.target))
    return 0


def _bounds(text: str) -> tuple[str, int | tuple[int, int]]:
    """A size's name with its bounds. Raises ArgumentError."""
    name, _, value = text.partition("=")
    parts = value.split(":")
    if not name or len(parts) > 2 or not all(part.isdecimal() for part in parts):
        raise ArgumentError(f"--size: expected NAME=N or NAME=LEAST:MOST, got {text!r}")
    numbers = [int(part) for part in parts]
    return name, numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])
