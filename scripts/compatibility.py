"""docs/compatibility.md: every public name of tinygrad 0.14 and torch 2.13, and ours, or the reason why not.

    python scripts/compatibility.py            write the page from the recorded names
    python scripts/compatibility.py --check    fail if the page is not what it would write
    python scripts/compatibility.py --record   inspect the installed packages, and write their names down

A name that is neither ours nor explained in compatibility_reasons.py is an error: that is the point. So is a
name that is ours without a proof (tests/proofs) that it means the same, or differs as
compatibility_differs.py says.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compatibility_differs import PROVED_ELSEWHERE, differences_of
from compatibility_reasons import EQUIVALENTS, IN_PLACE, INTERNAL, REASONS, RULES

import polygrad
from polygrad import Tensor, nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))
from proofs.registry import calls_of  # noqa: E402

NAMES = ROOT / "docs" / "names"
PAGE = ROOT / "docs" / "compatibility.md"
HINTS = ROOT / "polygrad" / "missing_names.py"


@dataclass(frozen=True)
class Section:
    """Names of one place of a package. `ours`: where we look for each; `reasons`: the table that explains."""

    package: str
    title: str
    place: str
    ours: tuple[tuple[str, Any], ...]
    kind: str = "all"


STATUSES = ("same", "differs", "other", "no")
TENSOR, NN, OPTIM, STATE = ("Tensor.", Tensor), ("nn.", nn), ("nn.optim.", nn.optim), ("nn.state.", nn.state)
TOP, DTYPES = ("", polygrad), ("dtypes.", polygrad.dtypes)
SECTIONS = (
    Section("tinygrad", "Tensor", "tinygrad.Tensor", (TENSOR,)),
    Section("tinygrad", "The package", "tinygrad", (TOP,), "own"),
    Section("tinygrad", "nn", "tinygrad.nn", (NN,), "own"),
    Section("tinygrad", "nn.optim", "tinygrad.nn.optim", (OPTIM,), "own"),
    Section("tinygrad", "nn.state", "tinygrad.nn.state", (STATE,), "own"),
    Section("tinygrad", "dtypes", "tinygrad.dtypes", (DTYPES,)),
    Section("torch", "Tensor", "torch.Tensor", (TENSOR,)),
    Section("torch", "torch", "torch", (TENSOR, TOP, NN, STATE, DTYPES), "functions"),
    Section("torch", "nn.functional", "torch.nn.functional", (TENSOR,), "own functions"),
    Section("torch", "fft", "torch.fft", (TENSOR,), "functions"),
    Section("torch", "nn", "torch.nn", (NN,), "classes"),
    Section("torch", "nn.Module", "torch.nn.Module", ()),
    Section("torch", "nn.init", "torch.nn.init", (("nn.init.", nn.init),), "own functions"),
    Section("torch", "optim", "torch.optim", (OPTIM,), "classes"),
    Section("torch", "optim.lr_scheduler", "torch.optim.lr_scheduler", (OPTIM,), "own classes"),
)


# --- what the packages have


def resolve(place: str) -> Any:
    """The object at a dotted place, whose longest part is a module."""
    parts = place.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        for name in parts[i:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(place)


def names_of(section: Section) -> list[str]:
    """The public names of a section, of the package that is installed."""
    owner = resolve(section.place)

    def is_meant(name: str) -> bool:
        try:
            value = getattr(owner, name)
        except (AttributeError, RuntimeError):
            return False
        if inspect.ismodule(value) or name.startswith("_"):
            return False
        if "functions" in section.kind and (not callable(value) or inspect.isclass(value)):
            return False
        if "classes" in section.kind and not inspect.isclass(value):
            return False
        home = getattr(value, "__module__", None) or ""
        if section.kind == "own functions" and inspect.isbuiltin(value):
            return True
        return not section.kind.startswith("own") or home.startswith(section.place)

    return sorted(filter(is_meant, dir(owner)))


def names_of_package(package: str) -> dict[str, list[str]]:
    """The public names of each section of an installed package, by place."""
    return {s.place: names_of(s) for s in SECTIONS if s.package == package}


def record() -> None:
    """Write down the names of the packages that are installed."""
    NAMES.mkdir(parents=True, exist_ok=True)
    for package in ("tinygrad", "torch"):
        module = importlib.import_module(package)
        version = importlib.metadata.version(package).split("+")[0]
        assert module is not None
        text = json.dumps({"version": version, "names": names_of_package(package)}, indent=1)
        (NAMES / f"{package}.json").write_text(text + "\n", encoding="utf-8")


# --- what we have instead


def lookup(section: Section, name: str) -> tuple[str, str] | None:
    """(status, what to say) of a name: 'same', 'differs', 'other' or 'no'; None if it is missing and not
    explained."""
    for prefix, owner in section.ours:
        if hasattr(owner, name) and not inspect.ismodule(getattr(owner, name)):
            lines = [d.line for d in differences_of(section.place, name)]
            return ("differs", "; ".join(lines)) if lines else ("same", f"`{prefix}{name}`")
    keys = [f"{section.place}.{name}"] + [name] * (section.package == "torch")
    for key in keys:
        if key in EQUIVALENTS:
            return "other", EQUIVALENTS[key]
        if key in REASONS:
            return "no", REASONS[key]
    for place, pattern, status, text in RULES:
        if re.fullmatch(place, section.place) and re.fullmatch(pattern, name):
            return status, text
    if section.package == "torch" and name.endswith("_"):
        found = lookup(section, name[:-1])
        return found if found is None or found[0] == "no" else ("other", IN_PLACE)
    return None


def missing_names(sections: Iterable[Section], names: Callable[[Section], list[str]]) -> list[str]:
    """Names that are neither ours nor explained."""
    return [f"{s.place}.{n}" for s in sections for n in names(s) if lookup(s, n) is None]


def is_proved(section: Section, name: str) -> bool:
    """Whether generated calls compare the name with the peer's."""
    return bool(calls_of(section.place, name))


def unproved_names(sections: Iterable[Section], names: Callable[[Section], list[str]]) -> list[str]:
    """Names said to be the same, or to differ, of which no test shows it."""
    return [
        f"{s.place}.{n}"
        for s in sections
        for n in names(s)
        if (lookup(s, n) or ("",))[0] in ("same", "differs")
        and not is_proved(s, n)
        and f"{s.place}.{n}" not in PROVED_ELSEWHERE
    ]


def recorded(section: Section) -> list[str]:
    """The names of a section as they were recorded."""
    text = (NAMES / f"{section.package}.json").read_text(encoding="utf-8")
    return list(json.loads(text)["names"][section.place])


def version_of(package: str) -> str:
    return str(json.loads((NAMES / f"{package}.json").read_text(encoding="utf-8"))["version"])


def table(section: Section) -> tuple[list[str], dict[str, int]]:
    """The lines of a section, and how many names there are of each status."""
    names = recorded(section)
    found = {n: lookup(section, n) or ("no", "") for n in names}
    counts = {s: sum(status == s for status, _ in found.values()) for s in STATUSES}
    same = [n for n in names if found[n][0] == "same"]
    lines = [f"### {section.place}", ""]
    lines += [
        f"{len(names)} names: {counts['same']} the same, {counts['differs']} differ, "
        f"{counts['other']} otherwise, {counts['no']} not.",
        "",
    ]
    if same:
        lines += ["The same: " + ", ".join(f"`{n}`" for n in same) + ".", ""]
    by_text: dict[tuple[str, str], list[str]] = {}
    for n in names:
        if found[n][0] != "same":  # one row for all names with the same text
            by_text.setdefault(found[n], []).append(n)
    for status, title in (("differs", "differs"), ("other", "here"), ("no", "why not")):
        rows = [(ns, text) for (s, text), ns in by_text.items() if s == status]
        if rows:
            lines += [f"| {section.package} | {title} |", "| --- | --- |"]
            lines += [f"| {', '.join(f'`{n}`' for n in ns)} | {text} |" for ns, text in rows] + [""]
    return lines, counts


def page() -> str:
    """The whole page."""
    ours = [
        (s, n) for s in SECTIONS for n in recorded(s) if (lookup(s, n) or ("",))[0] in ("same", "differs")
    ]
    here, proved = len(ours), sum(is_proved(s, n) for s, n in ours)
    calls = sum(len(calls_of(s.place, n)) for s, n in ours)
    generated, others = f"{calls:,}", here - proved
    head = f"""<!-- Written by scripts/compatibility.py: do not edit. -->

# Compatibility

Public names of tinygrad {version_of("tinygrad")} and torch {version_of("torch")}, and what there is here: the
same name, the same name with a difference, another way to say it, or the reason why not. The list is made
by inspecting the packages; `make check` fails when it is not current, or when a name is neither here nor
explained.

{proved} of the {here} names that are the same, or differ, are proved by test: {generated} generated calls
are evaluated here and by the installed package, and compared in values, gradients, dtypes and refusals
(`tests/proofs`). The other {others} have tests of their own. "Differs" means: so, and not otherwise, than the
line says. Where tinygrad and torch differ, tinygrad's meaning stays. A dtype that a package refuses for want
of a kernel may be computed here. What tinygrad makes of NaN and infinities depends on its device and is not
compared; here it is as torch's.

There are no complex dtypes. Complex numbers are pairs of reals along a last axis of 2, as those of
`torch.view_as_real`: Fourier transforms take and give them, with gradients; `x[..., 0]` and `x[..., 1]` are
the parts.

Methods keep tinygrad's argument names where both packages have them (`axis` in reductions, `dim` elsewhere).
Functions of `torch` and `torch.nn.functional` are methods of `Tensor`; modules without parameters are
functions or methods, too, for a model is any object that has Tensors in it.
"""
    parts = []
    summary = ["| | names | the same | differs | otherwise | not |", "| --- | --- | --- | --- | --- | --- |"]
    for package in ("tinygrad", "torch"):
        parts += [f"## {package}", ""]
        for section in (s for s in SECTIONS if s.package == package):
            lines, counts = table(section)
            parts += lines
            total = sum(counts.values())
            summary.append(
                f"| `{section.place}` | {total} | {' | '.join(str(counts[s]) for s in STATUSES)} |"
            )
    return "\n".join([head, *summary, "", *parts]).rstrip() + "\n"


def homes() -> dict[str, list[str]]:
    """The names that the packages and we have, by what is in front of ours; without those of the package
    itself."""
    found: dict[str, set[str]] = {}
    for section in SECTIONS:
        for name in recorded(section):
            if (lookup(section, name) or ("",))[0] in ("same", "differs"):
                prefix = next(prefix for prefix, owner in section.ours if hasattr(owner, name))
                found.setdefault(prefix, set()).add(name)
    return {prefix: sorted(names) for prefix, names in found.items() if prefix}


def hints() -> str:
    """The module of what to use instead of names that are not here, for errors."""
    lines = [
        '"""What there is instead of names of torch and tinygrad. Written by scripts/compatibility.py."""',
        "",
        "# By place, names by what there is instead.",
        "MISSING: dict[str, dict[str, str]] = {",
    ]
    for section in SECTIONS:
        by_text: dict[str, list[str]] = {}
        for name in recorded(section):
            status, text = lookup(section, name) or ("", "")
            if status in ("other", "no") and text not in (INTERNAL, IN_PLACE):
                by_text.setdefault(text, []).append(name)
        if by_text:
            lines.append(f"    {section.place!r}: {{")
            lines += [f"        {text!r}: {' '.join(names)!r}," for text, names in by_text.items()]
            lines.append("    },")
    lines += ["}", "", "# Names that are here, by what is in front of them.", "HERE: dict[str, str] = {"]
    lines += [f"    {prefix!r}: {' '.join(names)!r}," for prefix, names in homes().items()]
    text = "\n".join([*lines, "}", ""])
    ruff = [sys.executable, "-m", "ruff", "format", "-q", f"--stdin-filename={HINTS}", "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if the page is not current")
    parser.add_argument("--record", action="store_true", help="inspect the installed packages first")
    arguments = parser.parse_args()
    if arguments.record:
        record()
    unexplained = missing_names(SECTIONS, recorded)
    if unexplained:
        print(f"neither here nor explained ({len(unexplained)}): {', '.join(unexplained)}", file=sys.stderr)
        return 1
    unproved = unproved_names(SECTIONS, recorded)
    if unproved:
        print(f"here without a proof ({len(unproved)}): {', '.join(unproved)}", file=sys.stderr)
        return 1
    for path, text in ((PAGE, page()), (HINTS, hints())):
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} is not current: run `make compatibility`", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
