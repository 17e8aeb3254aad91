"""`Bundle`: several Programs in one file, which share parameters and state, and other files beside them.

A model that generates text is one: its Programs take prompts of several lengths, and draw tokens. A file is

    b"PGRB" | u32 version | u32 header length | SHA-256 of the header | header (UTF-8 JSON) | settings
    | the Programs | the files | values

(little-endian; `runtime/parts.py` says more). The settings are JSON, the values a safetensors file without
metadata. The header is

    {"kind", "settings": part, "programs": [{"name", part}], "files": [{"name", part}], "values": part,
     "zeros": [name]}

where a part has the fields `bytes` and `sha256`. `kind` says what the Programs are for, and so what their
names and the settings mean. Each Program is as `Program.to_bytes` writes it, without values of its own (see
`runtime/program.py`); all are for one device. Parameters and states of one name are one memory in all
Programs. The values have all of them but the `zeros`, which are zero at first. They come last, so that a
reader can give the Programs their memory before, and write what arrives to where it stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from polygrad.errors import ProgramError
from polygrad.runtime.parts import part_of, read_header, read_parts, write_header
from polygrad.runtime.program import Program, read_program
from polygrad.runtime.strict_json import parse_json

MAGIC, VERSION = b"PGRB", 2
TEXT_GENERATION = "text-generation"
FEATURE_EXTRACTION = "feature-extraction"
TEXT_CLASSIFICATION = "text-classification"
_SHARED = ("param", "state")
_FIELDS = frozenset({"kind", "settings", "programs", "files", "values", "zeros"})
_SECTION = frozenset({"name", "bytes", "sha256"})


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

    def head(self, values: Iterable[Any] = ()) -> bytes:
        """The file up to the values, which consist of these pieces. Raises ProgramError for settings that a
        file cannot have."""
        settings = json.dumps(self.settings, separators=(",", ":")).encode()
        try:
            parse_json(settings, floats=True)
        except ValueError as e:
            raise ProgramError(f"Bundle: expected settings that a file can have, got {e}") from e
        programs = {name: program.to_bytes() for name, program in self.programs.items()}
        header = {
            "kind": self.kind,
            "settings": part_of([settings]),
            "programs": [{"name": name, **part_of([data])} for name, data in programs.items()],
            "files": [{"name": name, **part_of([data])} for name, data in self.files.items()],
            "values": part_of(values),
            "zeros": self.zeros,
        }
        start = write_header(MAGIC, VERSION, header)
        return b"".join((start, settings, *programs.values(), *self.files.values()))


def is_bundle(data: Any) -> bool:
    """Whether these bytes begin as a Bundle does."""
    return bytes(memoryview(data)[:4]) == MAGIC


def read_bundle(data: Any) -> tuple[Bundle, memoryview]:
    """The Bundle in `data`, bytes or a buffer, and its values, which are not copied. Raises ProgramError."""
    try:
        header, raw = read_header(memoryview(data).cast("B"), MAGIC, VERSION, "Bundle")
        if header.keys() != _FIELDS:
            raise ValueError(f"a header with the fields {sorted(header)}")
        kind, zeros = header["kind"], header["zeros"]
        if not isinstance(kind, str):
            raise ValueError(f"no kind: {kind!r:.80}")
        if not isinstance(zeros, list) or not all(isinstance(name, str) for name in zeros):
            raise ValueError(f"no names of zeros: {zeros!r:.80}")
        programs, files = _names(header["programs"]), _names(header["files"])
        sections = zip((*programs, *files), map(_part, (*header["programs"], *header["files"])), strict=True)
        described = [("the settings", header["settings"]), *sections, ("the values", header["values"])]
        settings_text, *parts, values = read_parts(raw, described)
        settings = parse_json(settings_text, floats=True)
        if not isinstance(settings, dict):
            raise ValueError(f"no settings: {settings!r:.80}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ProgramError(f"Bundle: expected a whole file, got damaged bytes ({e})") from e
    named = {name: _read_program(name, part) for name, part in zip(programs, parts)}
    copies = {name: bytes(part) for name, part in zip(files, parts[len(programs) :], strict=True)}
    return Bundle(kind, settings, named, copies, tuple(zeros)), values


def _names(sections: Any) -> list[str]:
    """The names of sections, which are different. Raises ValueError and others for what is no list of
    sections."""
    if not isinstance(sections, list):
        raise ValueError(f"no list: {sections!r:.80}")
    for section in sections:
        if section.keys() != _SECTION or not isinstance(section["name"], str):
            raise ValueError(f"no section: {section!r:.80}")
    names = [section["name"] for section in sections]
    if len(set(names)) != len(names):
        raise ValueError(f"names that occur twice: {names!r:.80}")
    return names


def _part(section: dict[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in section.items() if field != "name"}


def _read_program(name: str, part: memoryview) -> Program:
    program, values = read_program(part)
    if values:
        raise ProgramError(f"Bundle: {name}: expected a Program without values, got {len(values)} bytes")
    return program


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
