"""`Bundle`: several Programs in one file, which share parameters and state, and other files beside them.

A model that generates text is one: its Programs take prompts of several lengths, and draw tokens. A model
for several devices is one: each has Programs of the same names. A file is

    b"PGRB" | u32 version | u32 header length | SHA-256 of the header | header (UTF-8 JSON) | settings
    | the Programs | the files | values

(little-endian; `runtime/parts.py` says more). The settings are JSON, the values a safetensors file without
metadata. The header is

    {"kind", "settings": part, "programs": [{"name", "target", part}], "files": [{"name", part}],
     "values": part, "zeros": [name]}

where a part has the fields `bytes` and `sha256`. `kind` says what the Programs are for, and so what their
names and the settings mean; `step` is an exported step, one Program of this name. Each Program is as
`Program.to_bytes` writes it, without values of its own (see `runtime/program.py`). `target` numbers, from 0,
what the Programs are for, the preferred one first: all Programs of a target are for one device, and all
targets have Programs of the same names, inputs, outputs, parameters and states. A reader uses those of one
target. Parameters and states of one name are one memory in all its Programs. The values have all of them but
the `zeros`, which are zero at first. They come last, so that a reader can give the Programs their memory
before, and write what arrives to where it stays.

Files of version 2 are read, too: they have one target, of which their header does not speak.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from polygrad.errors import ProgramError
from polygrad.runtime.limits import MAX_TARGETS
from polygrad.runtime.parts import part_of, read_header, read_parts, write_header
from polygrad.runtime.program import Program, read_program
from polygrad.runtime.strict_json import parse_json

MAGIC, VERSION = b"PGRB", 3
STEP = "step"  # the kind of an exported step, and the name of its Program
TEXT_GENERATION = "text-generation"
FEATURE_EXTRACTION = "feature-extraction"
TEXT_CLASSIFICATION = "text-classification"
_FIELDS = frozenset({"kind", "settings", "programs", "files", "values", "zeros"})
_SECTION = frozenset({"name", "bytes", "sha256"})
_PORTS = ("input", "output")


@dataclass(frozen=True)
class Bundle:
    """`kind`: what runs it. `settings`: plain JSON for that. `targets`: Programs by name, for each device.
    The preferred one is first. `files`: by name. `zeros`: the names of shared buffers that are zero at first.

    Raises ProgramError for Programs that do not fit together.
    """

    kind: str
    settings: Mapping[str, Any]
    targets: tuple[Mapping[str, Program], ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    zeros: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            _check(self)
        except ValueError as e:
            raise ProgramError(f"Bundle: expected Programs that share their memory, got {e}") from e

    @property
    def programs(self) -> Mapping[str, Program]:
        """The Programs of the first target, by name."""
        return self.targets[0]

    @property
    def devices(self) -> tuple[str, ...]:
        """The device of each target."""
        return tuple(next(iter(programs.values())).device for programs in self.targets)

    def head(self, values: Iterable[Any] = ()) -> bytes:
        """The file up to the values, which consist of these pieces. Raises ProgramError for settings that a
        file cannot have."""
        settings = json.dumps(self.settings, separators=(",", ":")).encode()
        try:
            parse_json(settings, floats=True)
        except ValueError as e:
            raise ProgramError(f"Bundle: expected settings that a file can have, got {e}") from e
        programs = [
            (name, target, program.to_bytes())
            for target, programs in enumerate(self.targets)
            for name, program in programs.items()
        ]
        header = {
            "kind": self.kind,
            "settings": part_of([settings]),
            "programs": [{"name": name, "target": n, **part_of([data])} for name, n, data in programs],
            "files": [{"name": name, **part_of([data])} for name, data in self.files.items()],
            "values": part_of(values),
            "zeros": self.zeros,
        }
        parts = [settings, *(data for _, _, data in programs), *self.files.values()]
        return b"".join((write_header(MAGIC, VERSION, header, sum(map(len, parts))), *parts))


def is_bundle(data: Any) -> bool:
    """Whether these bytes begin as a Bundle does."""
    return bytes(memoryview(data)[:4]) == MAGIC


def read_bundle(data: Any) -> tuple[Bundle, memoryview]:
    """The Bundle in `data`, bytes or a buffer, and its values, which are not copied. Raises ProgramError."""
    try:
        version, header, raw = read_header(memoryview(data).cast("B"), MAGIC, (VERSION, 2), "Bundle")
        if header.keys() != _FIELDS:
            raise ValueError(f"a header with the fields {sorted(header)}")
        kind, zeros = header["kind"], header["zeros"]
        if not isinstance(kind, str):
            raise ValueError(f"no kind: {kind!r:.80}")
        if not isinstance(zeros, list) or not all(isinstance(name, str) for name in zeros):
            raise ValueError(f"no names of zeros: {zeros!r:.80}")
        programs, files = _sections(header["programs"], version > 2), _sections(header["files"], False)
        described = [(name, part) for name, _, part in (*programs, *files)]
        described = [("the settings", header["settings"]), *described, ("the values", header["values"])]
        settings_text, *parts, values = read_parts(raw, described)
        settings = parse_json(settings_text, floats=True)
        if not isinstance(settings, dict):
            raise ValueError(f"no settings: {settings!r:.80}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ProgramError(f"Bundle: expected a whole file, got damaged bytes ({e})") from e
    targets: list[dict[str, Program]] = [{} for _ in range(1 + max((n for _, n, _ in programs), default=-1))]
    for (name, target, _), data_of_program in zip(programs, parts):
        targets[target][name] = _read_program(name, data_of_program)
    copies = {name: bytes(part) for (name, _, _), part in zip(files, parts[len(programs) :], strict=True)}
    return Bundle(kind, settings, tuple(targets), copies, tuple(zeros)), values


def _sections(sections: Any, have_targets: bool) -> list[tuple[str, int, dict[str, Any]]]:
    """Of each section its name, its target and its part. Raises ValueError and others for what is no list of
    sections, and for two with the same name and target."""
    if not isinstance(sections, list):
        raise ValueError(f"no list: {sections!r:.80}")
    fields = _SECTION | {"target"} if have_targets else _SECTION
    out: list[tuple[str, int, dict[str, Any]]] = []
    for section in sections:
        name, target = section["name"], section.get("target", 0)
        in_range = type(target) is int and 0 <= target < MAX_TARGETS
        if section.keys() != fields or not isinstance(name, str) or not in_range:
            raise ValueError(f"no section: {section!r:.80}")
        out.append((name, target, {field: section[field] for field in ("bytes", "sha256")}))
    if len({(name, target) for name, target, _ in out}) != len(out):
        raise ValueError(f"names that occur twice: {[name for name, _, _ in out]!r:.80}")
    return out


def _read_program(name: str, part: memoryview) -> Program:
    program, values = read_program(part)
    if values:
        raise ProgramError(f"Bundle: {name}: expected a Program without values, got {len(values)} bytes")
    return program


def _check(bundle: Bundle) -> None:
    """Raises ValueError for Programs that contradict each other."""
    if not bundle.targets or not all(bundle.targets):
        raise ValueError("none")
    if bundle.kind == STEP and bundle.programs.keys() != {STEP}:
        raise ValueError(f"an exported step with {sorted(bundle.programs)}")
    first, *others = [_interface(programs) for programs in bundle.targets]
    for other in others:
        if different := [key for key in first.keys() | other.keys() if first.get(key) != other.get(key)]:
            name = min(different)[-1]
            raise ValueError(f"targets of which one has another {name!r}, or none")
    if missing := [name for name in bundle.zeros if (name,) not in first]:
        raise ValueError(f"none with {missing[0]!r}, which is to be zero")


def _interface(programs: Mapping[str, Program]) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """What all targets have in common: the spec of each shared buffer, by (its name,), and of each input and
    output, by (the Program's name, the role, its name). Raises ValueError for Programs that contradict each
    other."""
    if len(devices := {program.device for program in programs.values()}) > 1:
        raise ValueError(f"some for {' and '.join(sorted(devices))}")
    specs: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for name, program in programs.items():
        specs[name, "", name] = tuple(sorted((v.name, v.lo, v.hi) for v in program.variables))
        for spec in program.buffers:
            if spec.role == "scratch":
                continue
            if not spec.name or spec.shape is None:
                raise ValueError(f"a buffer without a name or a shape in {name}")
            key = (name, spec.role, spec.name) if spec.role in _PORTS else (spec.name,)
            kind = (spec.dtype, spec.size, spec.shape)  # the shape may have Variables
            if (other := specs.setdefault(key, kind)) != kind:
                raise ValueError(f"{spec.name} as {other} and, in {name}, as {kind}")
    return specs
