"""Says what is wrong with this installation and what to do: tries each device with a small computation,
checks the versions of packages, the environment variables and the cache of compiled kernels.

The exit status is 1 when the default device does not work.
"""

from __future__ import annotations

import argparse
import dataclasses
import json

from polygrad.cli.examination import Finding, examine
from polygrad.cli.hosts import write

NAME = "doctor"
HELP = "say what is wrong and what to do"

_MARKS = {"ok": "ok    ", "note": "note  ", "warning": "WARN  ", "error": "ERROR "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="write JSON")


def run(options: argparse.Namespace) -> int:
    findings = list(examine(options.version))
    if options.json:
        write(
            json.dumps(
                {"findings": [dataclasses.asdict(f) for f in findings], "works": works(findings)}, indent=2
            )
        )
    else:
        write(text_of(findings))
    return 0 if works(findings) else 1


def works(findings: list[Finding]) -> bool:
    """Whether the default device works."""
    return not any(finding.level == "error" for finding in findings)


def text_of(findings: list[Finding]) -> str:
    """The findings for people to read."""
    lines = []
    for finding in findings:
        lines.append(f"{_MARKS[finding.level]}{finding.subject}: {finding.message}")
        if finding.remedy:
            lines.append(f"      -> {finding.remedy}")
    counts = {level: sum(f.level == level for f in findings) for level in ("error", "warning")}
    verdict = "the default device works" if works(findings) else "the default device does not work"
    told = ", ".join(f"{n} {level}{'' if n == 1 else 's'}" for level, n in counts.items())
    return "\n".join([*lines, "", f"{told}: {verdict}"])
