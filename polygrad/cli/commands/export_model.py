"""Writes a model as one .pgrd file, which runs without this package's models, and on WASM and WEBGPU without
Python: in a page it starts in a tenth of a second.

polygrad export ./my-chat-model chat.pgrd --max-seq-len 4096 --quantize q8_0
polygrad export my-model.Q4_0.gguf chat.pgrd
polygrad export ./my-embedder embedder.pgrd
polygrad export ./my-vision-model vision.pgrd --batch 8 --device WEBGPU
polygrad export ./my-chat-model chat.pgrd --device WEBGPU,WASM
polygrad export ./my-embedder embedder.c --vectors 32

A model that generates text is written with its cache, what draws tokens, and its tokenizer; one that gives
vectors or labels of texts with its tokenizer, for texts of all lengths. Of other models, and with
--forward, --batch or --length, the file has the forward pass: inputs have the shapes that are given here,
so shorter texts are padded, with zeros in `attention_mask` where the model takes one.

With --threads, kernels on WASM are divided among up to so many threads, which isolated pages and Node have;
elsewhere one thread runs the file.

With several devices the file has the code for each, and the weights once. Who loads it gets the first that
their host has.

A file that ends in .c is C, with a header and the weights beside it: a function for each of the model's
steps (of texts: for each length), which takes and gives token ids.

With --sign the file is signed with a secret key, as `polygrad sign` does.

In JavaScript `loadLanguageModel`, `loadTextEncoder`, `loadTextClassifier` and `load` of `polygrad/runtime`
run the file, in Python `load_language_model`, `load_text_encoder`, `load_text_classifier` and `load` of
`polygrad.export`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from polygrad.capture.c_options import COptions, is_c_file
from polygrad.cli.descriptions import describe_exported, describe_ports
from polygrad.cli.hosts import write
from polygrad.cli.keys import sign_exported
from polygrad.cli.models import add_model_arguments, load_model
from polygrad.engine.devices import Device
from polygrad.errors import ArgumentError
from polygrad.export.combining import combine
from polygrad.hf.example_inputs import example_inputs
from polygrad.hf.instances import HFInstance, LanguageModel
from polygrad.hf.text_encoders import TextClassifier, TextEncoder
from polygrad.runtime.limits import MAX_THREADS

NAME = "export"
HELP = "write a model as a .pgrd file or as C, which run without Python"
_OF_C = ("name", "vectors", "embed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser, "WASM")
    parser.add_argument("target", help="the .pgrd file to write, or a .c file")
    parser.add_argument("--threads", type=int, metavar="N", help="of pages that run it on WASM, or of C (1)")
    parser.add_argument("--forward", action="store_true", help="write the forward pass alone")
    parser.add_argument("--batch", type=int, metavar="N", help="sequences or pictures of a forward pass (1)")
    parser.add_argument("--length", type=int, metavar="N", help="tokens of each sequence of it (64)")
    parser.add_argument(
        "--no-tokenizer", action="store_true", help="the file takes and gives token ids alone"
    )
    parser.add_argument("--sign", metavar="KEY", help="the file of a secret key that signs the file")
    group = parser.add_argument_group("C")
    group.add_argument("--name", help="what the names of functions begin with (the file's)")
    group.add_argument(
        "--vectors", metavar="N,...", help="the widths of vectors in bytes, beside scalar code (16,32,64)"
    )
    group.add_argument("--embed", type=int, metavar="N", help="bytes of weights in the file itself (2^20)")


def run(options: argparse.Namespace) -> int:
    target = Path(options.target)
    if is_c_file(target):
        if options.sign is not None:
            raise ArgumentError(f"--sign: expected a target that ends in .pgrd, got {target}")
        return _run_for_c(options, target)
    given = [f"--{name}" for name in _OF_C if getattr(options, name) is not None]
    if given:
        raise ArgumentError(f"{', '.join(given)}: expected a target that ends in .c, got {target}")
    options.device = options.device or "WASM"
    devices = options.device.split(",")
    if options.threads is not None:
        _make_for_threads(options.threads, devices)
    if len(devices) == 1:
        is_model = _export(options, target)
    else:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as folder:
            files = [Path(folder) / f"{i}.pgrd" for i in range(len(devices))]
            for options.device, file in zip(devices, files):
                is_model = _export(options, file)
            combine(files, target)
    if options.sign is not None:
        sign_exported(target, options.sign)
    write(describe_exported(target).text if is_model else describe_ports(options.target))
    return 0


def _run_for_c(options: argparse.Namespace, target: Path) -> int:
    """Write C, which has no tokenizer."""
    options.device, options.no_tokenizer = options.device or "CPU", True
    _export(options, target, _c_options(options))
    files = [target.with_suffix(suffix) for suffix in (".c", ".h", ".safetensors")]
    write("\n".join(f"{path}: {path.stat().st_size:,} bytes" for path in files if path.exists()))
    return 0


def _c_options(options: argparse.Namespace) -> COptions:
    """Raises ArgumentError."""
    given = {name: getattr(options, name) for name in (*_OF_C, "threads")}
    given = {name: value for name, value in given.items() if value is not None}
    if "vectors" in given:
        try:
            given["vectors"] = tuple(int(n) for n in given["vectors"].split(",") if n)
        except ValueError as e:
            raise ArgumentError(f"--vectors: expected numbers, as 16,32, got {given['vectors']}") from e
    return COptions(**given)


def _make_for_threads(count: int, devices: Sequence[str]) -> None:
    """Let device WASM, which is not in use yet, make kernels for `count` threads. Raises ArgumentError."""
    if not 1 <= count <= MAX_THREADS:
        raise ArgumentError(f"--threads: expected 1 to {MAX_THREADS}, got {count}")
    if "WASM" not in devices:
        raise ArgumentError(f"--threads: expected device WASM, or a .c file, got {', '.join(devices)}")
    os.environ["WASM_THREADS"] = str(count)
    if Device.backend("WASM").target.threads < count:
        del os.environ["WASM_THREADS"]
        raise ArgumentError("--threads: expected a process that has not used WASM before, got one that has")


def _export(options: argparse.Namespace, target: Path, c: COptions | None = None) -> bool:
    """Write the file of one device. Whether it has a whole model, not its forward pass alone."""
    model = load_model(options, HFInstance, "runs forward")
    if options.no_tokenizer:
        model.tokenizer = None
    is_forward = options.forward or options.batch is not None or options.length is not None
    if not is_forward and isinstance(model, (LanguageModel, TextEncoder, TextClassifier)):
        model.export(target, c=c)
        return True
    batch, length = (usual if n is None else n for n, usual in ((options.batch, 1), (options.length, 64)))
    model.export(target, example_inputs(model, batch, length), c=c)
    return False
