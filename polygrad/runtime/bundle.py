"""`Bundle`: several Programs in one file, which share parameters and state, and other files beside them.

A model that generates text is one: its Programs take prompts of several lengths, and draw tokens. A file is

    b"PGRB" | u32 version | u32 header length | header (UTF-8 JSON) | the Programs | the files | values

(little-endian). The values are a safetensors file. The header is

    {"kind", "settings", "programs": [{"name", "length"}], "files": [{"name", "length"}], "values": length,
     "zeros": [name]}

with lengths in bytes. `kind` says what the Programs are for, and so what their names and the settings mean.
Each Program is as `Program.to_bytes` writes it, without values of its own (see `runtime/program.py`); all
are for one device. Parameters and states of one name are one memory in all Programs. The values have all
of them but the `zeros`, which are zero at first. They come last, so that a reader can give the Programs their
memory before, and write what arrives to where it stays.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from polygrad.errors import ProgramError
from polygrad.runtime.program import Program, read_program

MAGIC, VERSION = b"PGRB", 1
TEXT_GENERATION = "text-generation"
FEATURE_EXTRACTION = "feature-extraction"
TEXT_CLASSIFICATION = "text-classification"
_SHARED = ("param", "state")


@dataclass(frozen=True)
class Bundle:
    """`kind`: what runs it. `settings`: plain JSON for that. `programs` and `files`: by name. `zeros`: the
    names of shared buffers that are zero at first.

    Raises ProgramError for Programs that do not fit together.
    """

    kind: str
    settings: Mapping[str, Any]
    programs: Mapping[str, Program]
    files: Mapping[str, bytes] = field(default_factory=dict)
    zeros: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            _check(self)
        except ValueError as e:
            raise ProgramError(f"Bundle: expected Programs that share their memory, got {e}") from e

    @property
    def device(self) -> str:
        """The device of all Programs."""
        return next(iter(self.programs.values())).device

    def head(self, values_length: int) -> bytes:
        """The file up to the values, which are so long."""
        programs = {name: program.to_bytes() for name, program in self.programs.items()}
        header = {
            "kind": self.kind,
            "settings": self.settings,
            "programs": [{"name": name, "length": len(data)} for name, data in programs.items()],
            "files": [{"name": name, "length": len(data)} for name, data in self.files.items()],
            "values": values_length,
            "zeros": self.zeros,
        }
        text = json.dumps(header, separators=(",", ":")).encode()
        start = MAGIC + struct.pack("<II", VERSION, len(text)) + text
        return b"".join((start, *programs.values(), *self.files.values()))


def is_bundle(data: Any) -> bool:
    """Whether these bytes begin as a Bundle does."""
    return bytes(memoryview(data)[:4]) == MAGIC


def read_bundle(data: Any) -> tuple[Bundle, memoryview]:
    """The Bundle in `data`, bytes or a buffer, and its values, which are not copied. Raises ProgramError."""
    raw = memoryview(data).cast("B")
    if not is_bundle(raw) or len(raw) < 12:
        raise ProgramError(f"Bundle: expected bytes starting {MAGIC!r}, got {bytes(raw[:4])!r}")
    version, length = struct.unpack_from("<II", raw, 4)
    if version != VERSION:
        raise ProgramError(f"Bundle: expected version {VERSION}, got {version}: export it again")
    try:
        header = json.loads(bytes(raw[12 : 12 + length]))
        sections = [*header["programs"], *header["files"], {"name": "", "length": header["values"]}]
        parts = _divide(raw[12 + length :], sections)
        programs, files, values = _grouped(header, parts)
        kind, settings, zeros = header["kind"], header["settings"], header["zeros"]
        if not isinstance(kind, str) or not isinstance(settings, dict):
            raise ValueError(f"no kind and settings: {kind!r:.80}")
        if not isinstance(zeros, list) or not all(isinstance(name, str) for name in zeros):
            raise ValueError(f"no names of zeros: {zeros!r:.80}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ProgramError(f"Bundle: expected a whole file, got damaged bytes ({e})") from e
    named = {name: read_program(part)[0] for name, part in programs.items()}
    copies = {name: bytes(part) for name, part in files.items()}
    return Bundle(kind, settings, named, copies, tuple(zeros)), values


def _divide(raw: memoryview, sections: list[dict[str, Any]]) -> list[memoryview]:
    lengths = [section["length"] for section in sections]
    if any(type(n) is not int or n < 0 for n in lengths) or sum(lengths) != len(raw):
        raise ValueError(f"sections of {lengths} bytes, {len(raw)} are there")
    parts, end = [], 0
    for n in lengths:
        parts.append(raw[end : end + n])
        end += n
    return parts


def _grouped(
    header: dict[str, Any], parts: list[memoryview]
) -> tuple[dict[str, memoryview], dict[str, memoryview], memoryview]:
    """The Programs and the files by name, and the values."""
    groups: list[dict[str, memoryview]] = []
    *named_parts, values = parts
    remaining = iter(named_parts)
    for kind in ("programs", "files"):
        group: dict[str, memoryview] = {}
        for section in header[kind]:
            if not isinstance(section["name"], str) or section["name"] in group:
                raise ValueError(f"no name of its own: {section!r}")
            group[section["name"]] = next(remaining)
        groups.append(group)
    return groups[0], groups[1], values


def _check(bundle: Bundle) -> None:
    """Raises ValueError for Programs that contradict each other."""
    if not bundle.programs:
        raise ValueError("none")
    if len(devices := {program.device for program in bundle.programs.values()}) > 1:
        raise ValueError(f"some for {' and '.join(sorted(devices))}")
    seen: dict[str, tuple[Any, ...]] = {}
    for name, program in bundle.programs.items():
        for spec in program.buffers:
            if spec.role == "scratch":
                continue
            if not spec.name or spec.shape is None:
                raise ValueError(f"a buffer without a name or a shape in {name}")
            if spec.role in _SHARED:
                kind = (spec.dtype, spec.size, spec.shape)  # the shape may have Variables
                if (other := seen.setdefault(spec.name, kind)) != kind:
                    raise ValueError(f"{spec.name} as {other} and, in {name}, as {kind}")
    if missing := [name for name in bundle.zeros if name not in seen]:
        raise ValueError(f"none with {missing[0]!r}, which is to be zero")
