"""Writes the forward pass of a checkpoint as a .pgrd file, which runs without this package's models, and on
WASM and WEBGPU without Python.

polygrad export ./my-classifier classifier.pgrd --batch 8 --length 128 --device WASM
polygrad export ./my-model model.pgrd --length 64 --quantize q8_0

Inputs have the shapes that are given here: shorter texts are padded, with zeros in `attention_mask` where the
model takes one. `polygrad.export.load` in Python and `polygrad/runtime` in JavaScript run the file.
"""

from __future__ import annotations

import argparse

from polygrad.cli.descriptions import describe_ports
from polygrad.cli.hosts import write
from polygrad.cli.models import add_model_arguments, load_model
from polygrad.hf.example_inputs import example_inputs
from polygrad.hf.instances import HFInstance

NAME = "export"
HELP = "write a model's forward pass as a .pgrd file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("target", help="the .pgrd file to write")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="sequences or pictures a run (1)")
    parser.add_argument("--length", type=int, default=64, metavar="N", help="tokens of each sequence (64)")


def run(options: argparse.Namespace) -> int:
    model = load_model(options, HFInstance, "runs forward")
    model.export(options.target, example_inputs(model, options.batch, options.length))
    write(describe_ports(options.target))
    return 0
