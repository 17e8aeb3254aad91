"""Lists the devices: which this host has, what drives each, and why the others are missing."""

from __future__ import annotations

import argparse
import dataclasses
import json

from polygrad.cli.hosts import DeviceReport, HostReport, host_report, words, write
from polygrad.engine.report import table_of

NAME, DEFAULT = "devices", True
HELP = "list the devices of this host (what runs where no command is named)"

_HEAD = ("device", "threads", "vector", "driven by", "adapter")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="write JSON")


def run(options: argparse.Namespace) -> int:
    report = host_report(options.version)
    write(json.dumps(dataclasses.asdict(report), indent=2) if options.json else text_of(report))
    return 0


def text_of(report: HostReport) -> str:
    """The report for people to read."""
    lines = [
        f"polygrad {report.polygrad}, {report.python}, {report.system}",
        f"default device: {report.default or 'none: ' + report.reason}",
        "",
        table_of(_HEAD, [_row(d) for d in report.devices if d.available], left=len(_HEAD)),
    ]
    missing = [d for d in report.devices if not d.available]
    if missing:
        lines += ["", "not available:", *(f"  {d.name}: {d.reason}" for d in missing)]
    return "\n".join(lines)


def _row(device: DeviceReport) -> list[str]:
    vector = f"{device.vector_bits} bits" if device.vector_bits else ""
    name = f"{device.name} *" if device.is_default else device.name
    return [name, words(device.threads), vector, device.driver, device.adapter]
