"""One file, one pass: IR in, IR out. `make bless` rewrites what comes out; the diff is reviewed.

    ; pass: merge-loops
    ; target: wasm
    ; changes: yes
    ; What the case is about.
    <the kernel before the pass>
    ; becomes
    <the kernel after it>

Such a kernel is what DEBUG=4 prints of the pass before. `changes: no` is a case that the pass must leave as
it is; nothing follows its kernel. Options: `optimized: no`; for the pass `optimize` either `opts: SIMD r1 4
2` (or `none`), Opts given by hand, and `error: ...` where they do not apply, or else `chosen: ...`, what the
heuristics choose. The idea is Cranelift's filetests.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from polygrad.codegen.lower.passes import PASSES, LoweringContext
from polygrad.codegen.opts.heuristics import choose
from polygrad.codegen.opts.opt import parse_opts, render_opts
from polygrad.codegen.target import Target, Workgroups
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.uop.args import Dot
from polygrad.uop.parser import parse
from polygrad.uop.printer import render
from polygrad.uop.spec import verify
from polygrad.uop.tensor_cores import TENSOR_CORES

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*/*.ir"))
BECOMES = "; becomes"
MOST_LINES = 80  # of a file that can be read

BYTE_DOT = Dot(dtypes.uint8, dtypes.int8)
TARGETS = {
    "wasm": Target("WASM", simd_bytes=16, registers=15, fma=True, scalar_fma=True, threads=4, index_bits=32),
    "cpu": Target("CPU", simd_bytes=64, registers=32, fma=True, scalar_fma=True, threads=4),
    "vnni": Target("CPU", simd_bytes=64, registers=32, fma=True, dots=frozenset({BYTE_DOT}), threads=4),
    "amx": Target(
        "CPU",
        simd_bytes=64,
        registers=32,
        fma=True,
        dots=frozenset({BYTE_DOT}),
        matrices=frozenset({BYTE_DOT}),
        threads=4,
    ),
    "plain": Target("PLAIN"),
    "gpu": Target("GPU", simd_bytes=16, index_bits=32, workgroups=Workgroups()),
    "cuda": Target(
        "CUDA",
        simd_bytes=16,
        fma=True,
        scalar_fma=True,
        index_bits=32,
        workgroups=Workgroups(subgroup=32),
        tensor_cores=(TENSOR_CORES[0],),
    ),
}
BY_NAME = {p.name: p for p in PASSES}
ANSWERS = {"yes": True, "no": False}
KEYS = ("pass", "target", "optimized", "opts", "error", "chosen", "changes")


@dataclass(frozen=True)
class Case:
    """A file, read."""

    header: tuple[str, ...]  # its lines
    options: dict[str, str]
    before: str

    @property
    def changes(self) -> bool:
        return ANSWERS[self.options["changes"]]

    @property
    def context(self) -> LoweringContext:
        given = self.options.get("opts")
        opts = None if given is None else parse_opts(given.removeprefix("none"))
        target = TARGETS[self.options["target"]]
        return LoweringContext(target, ANSWERS[self.options.get("optimized", "yes")], opts)


def read(text: str) -> Case:
    """A file's header and the kernel before the pass."""
    lines = text.splitlines()
    header = [line for line in lines if line.startswith(";") and line != BECOMES]
    stop = lines.index(BECOMES) if BECOMES in lines else len(lines)
    pairs = [line.removeprefix("; ").split(": ", 1) for line in header]
    options = {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[0] in KEYS}
    return Case(tuple(header), options, "\n".join(lines[len(header) : stop]))


def _line(key: str, value: str) -> str:
    return f"; {key}: {value}"


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_file(path, golden):
    case = read(path.read_text(encoding="utf-8"))
    assert case.options["pass"] == path.parent.name
    step, context = BY_NAME[path.parent.name], case.context
    assert step.applies(context), f"{step.name} is no pass of kernels for {context}"
    kernel = parse(case.before)[-1]
    verify(kernel.toposort(), "kernel")
    header = list(case.header)
    if "error" in case.options:
        with pytest.raises(OptError) as raised:
            step.run(kernel, context)
        header = [_line("error", str(raised.value)) if h.startswith("; error") else h for h in header]
        golden(str(path), "\n".join([*header, render(kernel)]))
        return
    if step.name == "optimize" and "opts" not in case.options:
        chosen = _line("chosen", render_opts(choose(kernel, context.target)) or "nothing")
        header = [h for h in header if not h.startswith("; chosen")]
        header.insert(2, chosen)
    after = step.run(kernel, context)
    linear = isinstance(after, list)
    verify(after if linear else after.toposort(), "linear" if linear else "kernel")
    before = kernel.toposort() if linear else kernel
    assert (after != before) is case.changes, (
        f"changes: {case.options['changes']}, but it becomes\n{render(after)}"
    )
    lines = [*header, render(kernel)]
    if case.changes:
        lines += [BECOMES, render(after)]
    golden(str(path), "\n".join(lines))


def test_every_pass_has_a_case_that_fires_and_one_that_must_not():
    answers = Counter((path.parent.name, read(path.read_text()).changes) for path in FILES)
    missing = [(p.name, c) for p in PASSES for c in (True, False) if not answers[p.name, c]]
    assert not missing
    assert {name for name, _ in answers} == set(BY_NAME)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_can_be_read(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES
    told = [
        line for line in read("\n".join(lines)).header if line.split(":")[0].removeprefix("; ") not in KEYS
    ]
    assert told, "expected a line that says what the case is about"
