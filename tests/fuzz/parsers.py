"""The readers by name: good files of each, and what reads them."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import struct
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from header_verdicts import with_text
from hf_sentencepiece import model_file

from fuzz.changes import changed
from polygrad import Tensor
from polygrad.cli.npy import from_npy, to_npy
from polygrad.codegen.kernels.kernel_opt import parse_kernel_opts
from polygrad.codegen.opts.opt import parse_opts
from polygrad.export.files import read_values
from polygrad.export.programs import Programs
from polygrad.hf.sentencepiece import BYTE, CONTROL, NORMAL, UNKNOWN, VocabularyPiece
from polygrad.hf.tokenizer import Tokenizer
from polygrad.nn.archives import gunzip
from polygrad.nn.state import gguf_load, safe_load, safe_save, tar_extract, torch_load, zip_extract
from polygrad.runtime.bundle import is_bundle, read_bundle
from polygrad.runtime.program import read_program
from polygrad.uop.parser import parse
from polygrad.wasm.reader import read_module
from polygrad.wasm.stops import stoppable
from polygrad.wasm.wat import print_module

TESTS = Path(__file__).parent.parent


@dataclass(frozen=True)
class Parser:
    """`files`: makes good files. `read`: reads one. `seal`: makes the checksums of a changed file right, so
    that more of it is read. `change`: damages one of the files."""

    files: Callable[[], list[bytes]]
    read: Callable[[bytes], object]
    seal: Callable[[bytes], bytes] = bytes
    change: Callable[[Sequence[bytes], random.Random], bytes] = changed


def _zip(files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in files.items():
            z.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def _tar(files: dict[str, bytes], kind: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue().rstrip(b"\0") + bytes(1024)


_FILES = {"a.txt": b"hello", "folder/b": bytes(range(200)), "empty": b"", "ä" * 40: b"x"}


def _safetensors() -> list[bytes]:
    names = ("float32", "float16", "bfloat16", "int64", "uint8", "bool")
    tensors = {f"t{i}": Tensor([[1, 0, 1]], dtype=name) for i, name in enumerate(names)}
    return [safe_save(tensors, metadata={"format": "pt"}), safe_save({}), safe_save({"x": Tensor(3.0)})]


def _gguf() -> list[bytes]:
    def text(s: bytes) -> bytes:
        return struct.pack("<Q", len(s)) + s

    pairs = text(b"list") + struct.pack("<IIQ3I", 9, 4, 3, 1, 2, 3)
    pairs += text(b"words") + struct.pack("<IIQ", 9, 8, 2) + text(b"a") + text(b"bc")
    pairs += text(b"general.alignment") + struct.pack("<II", 4, 32)
    info = text(b"t") + struct.pack("<IQQIQ", 2, 32, 2, 8, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 3) + pairs + info
    return [(TESTS / "nn/data/tensors.gguf").read_bytes(), head + bytes(-len(head) % 32 + 68)]


def _torch_objects() -> list[object]:
    """All storages have 24 bytes."""
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    half = torch.zeros(12, dtype=torch.float16)
    return [
        {"w": x, "b": x[1], "n": [1, 2.5, "text", None, True, (1, {2, 3})]},
        [torch.nn.Parameter(half), torch.arange(3)],
        torch.nn.Linear(3, 2, bias=False).state_dict(),
    ]


def _torch(zipped: bool) -> list[bytes]:
    out = []
    for x in _torch_objects():
        stream = io.BytesIO()
        torch.save(x, stream, _use_new_zipfile_serialization=zipped)
        out.append(stream.getvalue())
    return out


def _pickles() -> list[bytes]:
    files = [zipfile.ZipFile(io.BytesIO(data)) for data in _torch(True)]
    return [z.read(next(n for n in z.namelist() if n.endswith("data.pkl"))) for z in files]


def _in_zip(pickled: bytes) -> bytes:
    return _zip(
        {"m/data.pkl": pickled, "m/version": b"3\n", **{f"m/data/{i}": bytes(range(24)) for i in range(4)}}
    )


def _with_checksums(data: bytes) -> bytes:
    """A tar file with right checksums in each block that may be a header."""
    out = bytearray(data)
    for at in range(0, len(out) - 511, 512):
        if out[at + 257 : at + 262] == b"ustar":
            out[at + 148 : at + 156] = b" " * 8
            out[at + 148 : at + 156] = b"%06o\0 " % sum(out[at : at + 512])
    return bytes(out)


def _npy() -> list[bytes]:
    tensors = [Tensor([[1.0, 2.0]]), Tensor(3, dtype="int64"), Tensor([True]), Tensor.zeros(0, 3)]
    return [to_npy(t) for t in tensors]


def _pgrd() -> list[bytes]:
    files = [path.read_bytes() for path in sorted((TESTS / "pgrd/good").glob("*.pgrd"))]
    return [data for data in files if len(data) < 8000]


def _with_header_digest(data: bytes) -> bytes:
    if len(data) < 44:
        return data
    (length,) = struct.unpack_from("<I", data, 8)
    return with_text(data, data[44 : 44 + length])


def _read_pgrd(data: bytes) -> None:
    if is_bundle(data):
        bundle, values = read_bundle(data)
        programs, zeros = dict(bundle.programs), bundle.zeros
    else:
        program, values = read_program(data)
        programs, zeros = {"main": program}, ()
    entries = read_values(values)
    if programs and next(iter(programs.values())).device == "WASM":
        made = Programs(programs)
        made.set_values(entries, zeros)


def _wasm() -> list[bytes]:
    codes: dict[bytes, None] = {}
    for data in _pgrd():
        programs = read_bundle(data)[0].programs.values() if is_bundle(data) else [read_program(data)[0]]
        for program in programs:
            codes.update((k.code, None) for k in program.kernels if k.code.startswith(b"\0asm"))
    return list(codes)


def _read_wasm(data: bytes) -> None:
    print_module(read_module(data))
    stoppable(data)


def _listings() -> list[bytes]:
    found = []
    for path in sorted((TESTS / "filetests").glob("*/*.ir")):
        before = re.split(r"\n(?=;|\n| +0 )", re.sub(r"^;.*\n", "", path.read_text(), flags=re.M).strip("\n"))
        found.append(before[0].encode())
    return [data for data in found if len(data) < 5000][::3]


_BPE = {
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġab": 4}, "merges": ["a b", "Ġ ab"]},
    "pre_tokenizer": {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    },
    "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "added_tokens": [{"id": 5, "content": "<s>", "special": True}],
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [5], "tokens": ["<s>"]}},
    },
}
_WORDPIECE = {
    "model": {
        "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "a": 1, "##b": 2, "b": 3},
    },
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}]},
    "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Removed", "invert": False},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
}  # fmt: skip
_UNIGRAM = {
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["▁a", -1.0], ["b", -2.5]]},
    "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
}


def _read_tokenizer(data: bytes, name: str = "tokenizer.json") -> None:
    tokenizer = Tokenizer({name: data})
    tokenizer.decode(tokenizer.encode("ab a b"))


def _sentencepiece() -> list[bytes]:
    pieces = [
        VocabularyPiece("<unk>", 0.0, UNKNOWN),
        VocabularyPiece("<s>", 0.0, CONTROL),
        VocabularyPiece("</s>", 0.0, CONTROL),
        VocabularyPiece("<0x41>", 0.0, BYTE),
        *[VocabularyPiece(t, -float(i), NORMAL) for i, t in enumerate(("▁", "a", "b", "▁a", "ab"))],
    ]
    return [model_file(pieces, kind, 0, 1, 2) for kind in (1, 2)]


def _opts() -> list[bytes]:
    texts = (
        "SIMD r1 16 4, UPCAST r0 6, STAGE r2 LOAD 1, PARALLEL r0 4",
        "SIMD r1.0 16, UPCAST r2.1 8",
        "PARALLEL r0 4",
    )
    return [text.encode() for text in texts]


def _kernel_opts() -> list[bytes]:
    return [b"COMPUTE_AT k2 k3 r1 16, SPLIT_REDUCE k4 r2 8, RELAYOUT k4 1 0 2 1", b"none"]


def _as_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode("latin-1"))


PARSERS: dict[str, Parser] = {
    "safetensors": Parser(_safetensors, safe_load),
    "gguf": Parser(_gguf, gguf_load),
    "torch": Parser(lambda: [*_torch(True), *_torch(False)], torch_load),
    "pickle": Parser(_pickles, lambda data: torch_load(_in_zip(data))),
    "tar": Parser(lambda: [_tar(_FILES, k) for k in range(3)], tar_extract, _with_checksums),
    "zip": Parser(lambda: [_zip(_FILES), _zip(_FILES, zipfile.ZIP_DEFLATED)], zip_extract),
    "gzip": Parser(lambda: [gzip.compress(b"abc" * 50), gzip.compress(b"")], lambda data: gunzip(data, "x")),
    "npy": Parser(_npy, lambda data: from_npy(memoryview(data), "x")),
    "pgrd": Parser(_pgrd, _read_pgrd, _with_header_digest),
    "wasm": Parser(_wasm, _read_wasm),
    "ir": Parser(_listings, _as_text(parse)),
    "opts": Parser(_opts, _as_text(parse_opts)),
    "kernel-opts": Parser(_kernel_opts, _as_text(parse_kernel_opts)),
    "tokenizer": Parser(
        lambda: [json.dumps(x).encode() for x in (_BPE, _WORDPIECE, _UNIGRAM)], _read_tokenizer
    ),
    "sentencepiece": Parser(_sentencepiece, lambda data: _read_tokenizer(data, "tokenizer.model")),
}
