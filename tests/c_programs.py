"""Exported C files as programs: a `main` that reads inputs from a file and writes results to another, the
compilers that a machine may have, and what runs their programs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polygrad import export
from polygrad.capture.c_file.names import identifiers
from polygrad.helpers import prod

STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")


@dataclass(frozen=True)
class Compiler:
    """`run`: what comes before a program's path, to run it."""

    name: str
    command: tuple[str, ...]
    run: tuple[str, ...] = ()
    marks: tuple[Any, ...] = field(default=(), compare=False)

    @property
    def missing(self) -> list[str]:
        return [c for c in (self.command[0], *self.run[:1]) if shutil.which(c) is None]

    def param(self) -> Any:
        """A parameter of a test, which is skipped where the compiler is missing."""
        reason = f"this machine has no {', '.join(self.missing)}: scripts/toolchains.sh installs it"
        skip = pytest.mark.skipif(bool(self.missing), reason=reason)
        return pytest.param(self, id=self.name, marks=[skip, *self.marks])


SLOW = (pytest.mark.slow,)
GCC = Compiler("gcc", ("gcc", "-O2", *STRICT))
CLANG = Compiler("clang", ("clang", "-O2", *STRICT))
_SANITIZED = (
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fsanitize=float-cast-overflow",
)
OTHERS = (
    Compiler("gcc-native", ("gcc", "-O3", "-march=native", *STRICT), marks=SLOW),
    Compiler("clang-native", ("clang", "-O3", "-march=native", *STRICT), marks=SLOW),
    Compiler("gcc-sanitizers", ("gcc", *_SANITIZED, "-DMODEL_VECTOR=16", *STRICT), marks=SLOW),
    Compiler("gcc-sanitizers-scalar", ("gcc", *_SANITIZED, "-DMODEL_VECTOR=0", *STRICT), marks=SLOW),
    Compiler("tcc", ("tcc", "-Wall", "-Werror"), marks=SLOW),
    Compiler("aarch64", ("aarch64-linux-gnu-gcc", "-O2", "-static", *STRICT), ("qemu-aarch64",), SLOW),
    Compiler(
        "arm-none-eabi",
        ("arm-none-eabi-gcc", "-O2", "-mcpu=cortex-a9", "--specs=rdimon.specs", *STRICT),
        ("qemu-arm",),
        SLOW,
    ),
)
FASTEST = [c for c in (GCC, CLANG) if not c.missing]
EVERY = [c.param() for c in (GCC, CLANG, *OTHERS)]


def main_text(model: export.Model, name: str = "model", weights: bool = False) -> str:
    """A program that tests the step `name`, then takes as many steps as inputs.bin has inputs for."""
    macro = name.upper()
    variables = identifiers([v.name for v in model.program.variables], ("model", "inputs", "outputs"))
    largest = {v.name: v.hi for v in model.program.variables}

    def sizes(specs: Sequence[Any]) -> list[tuple[str, str, int]]:
        names = identifiers([s.name for s in specs])
        counts = [prod(largest[n] if isinstance(n, str) else n for n in s.shape) for s in specs]
        return [(n, s.dtype, c * s.dtype.itemsize) for n, s, c in zip(names, specs, counts, strict=True)]

    inputs, outputs = sizes(model.inputs), sizes(model.outputs)
    roles = {b.name: b.role for b in model.program.buffers if b.role in ("param", "state")}
    state = [
        entry for entry in zip(identifiers(list(roles)), roles, strict=True) if roles[entry[1]] == "state"
    ]
    nbytes = {s.name: prod(s.shape) * s.dtype.itemsize for s in model.parameters}
    lines = [
        '#include "model.h"',
        "#include <stdio.h>",
        "#include <string.h>",
        f"static uint64_t memory[{macro}_SELFTEST_SIZE / 8 + 1];",
    ]
    given = ""
    if weights:
        lines.append(f"static uint64_t weights[{macro}_WEIGHTS_SIZE / 8 + 1];")
        given = f", weights, {macro}_WEIGHTS_SIZE"
    for role, entries in (("in", inputs), ("out", outputs)):
        lines += [f"static uint64_t {role}_{n}[{size // 8 + 1}];" for n, _, size in entries]
    lines += ["int main(void) {", f"  {name} model;"]
    if weights:
        lines += [
            '  FILE *file = fopen("model.safetensors", "rb");',
            f"  if (!file || fread(weights, 1, {macro}_WEIGHTS_SIZE, file) != {macro}_WEIGHTS_SIZE)",
            "    return 90;",
        ]
    lines += [
        f"  int status = {name}_selftest(memory, sizeof memory{given});",
        f"  if (status) {{ puts({name}_status_text(status)); return status; }}",
        f"  status = {name}_init(&model, memory, sizeof memory{given});",
        "  if (status) return status;",
        '  FILE *source = fopen("inputs.bin", "rb"), *target = fopen("results.bin", "wb");',
        "  if (!source || !target) return 91;",
        *(f"  int64_t {v};" for v in variables),
        "  for (;;) {",
        *(f"    if (fread(&{v}, 1, 8, source) != 8) break;" for v in variables),
        *(f"    if (fread(in_{n}, 1, {size}, source) != {size}) break;" for n, _, size in inputs),
    ]
    lines += [f"    memset(out_{n}, 0, {size}); /* with Variables, perhaps not all is written */"
              for n, _, size in outputs]  # fmt: skip
    arguments = ["&model"]
    for struct, role, entries in (("inputs", "in", inputs), ("outputs", "out", outputs)):
        if entries:
            lines.append(f"    {name}_{struct} {struct};")
            lines += [f"    {struct}.{n} = (void *){role}_{n};" for n, _, _ in entries]
            arguments.append(f"&{struct}")
    lines += [
        f"    status = {name}_run({', '.join([*arguments, *variables])});",
        f"    if (status) {{ puts({name}_status_text(status)); return status; }}",
        *(f"    fwrite(out_{n}, 1, {size}, target);" for n, _, size in outputs),
        "  }",
        *(f"  fwrite(model.state.{n}, 1, {nbytes[label]}, target);" for n, label in state),
        "  return fclose(target);",
        "}",
    ]
    return "\n".join(lines) + "\n"


def build_and_run(
    folder: Path, compiler: Compiler, model: export.Model, inputs: Sequence[Mapping[str, Any]], *options: str
) -> bytes:
    """Compile model.c of a folder, run it on the inputs of each step, and return the results it wrote."""
    text = main_text(model, weights=(folder / "model.safetensors").exists())
    (folder / "main.c").write_text(text)
    raw = b""
    for step in inputs:
        raw += b"".join(np.int64(step[v.name]).tobytes() for v in model.program.variables)
        for spec in model.inputs:
            bounds = {v.name: v.hi for v in model.program.variables}
            full = prod(bounds[n] if isinstance(n, str) else n for n in spec.shape) * spec.dtype.itemsize
            raw += step[spec.name].tobytes().ljust(full, b"\0")
    (folder / "inputs.bin").write_bytes(raw)
    (folder / "results.bin").write_bytes(b"")
    command = [*compiler.command, *options, "model.c", "main.c", "-o", "program", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    done = subprocess.run([*compiler.run, "./program"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout[-1000:]} {done.stderr[-3000:]}"
    return (folder / "results.bin").read_bytes()


def expected_results(model: export.Model, inputs: Sequence[Mapping[str, Any]]) -> list[np.ndarray]:
    """What `export.load` gives for the inputs of each step: all outputs, and the states at the end."""
    out = []
    bounds = {v.name: v.hi for v in model.program.variables}
    for step in inputs:
        results = model.run(step)
        for spec in model.outputs:
            full = np.zeros(prod(bounds[n] if isinstance(n, str) else n for n in spec.shape), spec.dtype.name)
            raw = results[spec.name].numpy().ravel()
            full[: raw.size] = raw
            out.append(full)
    roles = {b.name: b.role for b in model.program.buffers if b.role in ("param", "state")}
    out += [model.parameter(name).numpy().ravel() for name, role in roles.items() if role == "state"]
    return out


def assert_close(raw: bytes, want: Sequence[np.ndarray], tolerance: float = 2e-4) -> None:
    """Floats differ by at most `tolerance` of a tensor's largest one, integers by nothing."""
    assert len(raw) == sum(w.nbytes for w in want)
    start = 0
    for i, w in enumerate(want):
        got = np.frombuffer(raw, w.dtype, w.size, start)
        start += w.nbytes
        if w.dtype.kind == "f":
            np.testing.assert_allclose(got, w, rtol=0, atol=tolerance * max(np.abs(w).max(initial=0), 1e-2),
                                       err_msg=f"result {i}")  # fmt: skip
        else:
            np.testing.assert_array_equal(got, w, err_msg=f"result {i}")
