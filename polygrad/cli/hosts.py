"""Facts about this host and each device, as plain data, which commands print or write as JSON."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from dataclasses import dataclass, field
from typing import Any

from polygrad.engine.devices import Device
from polygrad.errors import PolygradError
from polygrad.runtime.threads import get_num_threads


@dataclass(slots=True)
class DeviceReport:
    """A device. `reason`: why it is not available; `driver`: what drives it, with versions; `adapter`: the
    GPU's name; `vector_bits` are those of a vector register; None where it has no such thing."""

    name: str
    available: bool
    is_default: bool
    reason: str = ""
    driver: str = ""
    adapter: str = ""
    threads: int | None = None
    vector_bits: int | None = None


@dataclass(slots=True)
class HostReport:
    """This host. `default`: the default device; empty, with the reason, where the environment names none."""

    polygrad: str
    python: str
    system: str
    default: str
    reason: str = ""
    devices: list[DeviceReport] = field(default_factory=list)


def python_version() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def package_version(name: str) -> str | None:
    """The version of an installed distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def default_device() -> tuple[str, str]:
    """The default device, or the reason why there is none."""
    try:
        return Device.DEFAULT, ""
    except PolygradError as e:
        return "", str(e)


def device_report(name: str, default: str) -> DeviceReport:
    """The facts of one device, which is opened for that."""
    try:
        runtime, backend = Device[name], Device.backend(name)
    except PolygradError as e:
        return DeviceReport(name, False, name == default, reason=str(e).removeprefix(f"device {name}: "))
    target = backend.target
    versions = [(p, package_version(p)) for p in backend.packages]
    parts = [*(f"{p} {version}" for p, version in versions if version), backend.about()]
    report = DeviceReport(name, True, name == default, driver=", ".join(part for part in parts if part))
    if target.workgroups is None:
        report.threads = min(get_num_threads(), target.threads)
        report.vector_bits = 8 * target.simd_bytes or None
    else:
        report.adapter = runtime.description
    return report


def host_report(version: str) -> HostReport:
    """This host with all its devices."""
    default, reason = default_device()
    system = f"{platform.system()} {platform.machine()}" if sys.platform != "emscripten" else "Pyodide"
    report = HostReport(version, python_version(), system, default, reason)
    report.devices = [device_report(name, default) for name in Device.known()]
    return report


def write(text: str) -> None:
    """To standard output, which is the command's."""
    sys.stdout.write(text.rstrip("\n") + "\n")


def words(value: Any) -> str:
    """A cell of a table."""
    return "" if value is None else str(value)
