"""The examinations of `doctor`. Each yields findings; a finding for a problem says what to do.

Levels: `error`, the default device does not work; `warning`, something is misconfigured; `note`, this host
lacks something; `ok`.
"""

from __future__ import annotations

import difflib
import math
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from polygrad.cli.hosts import default_device, package_version, python_version
from polygrad.engine.cache import cache_directory, why_not_private
from polygrad.engine.devices import Device
from polygrad.environment import VARIABLES, parse_integer
from polygrad.errors import DeviceError, PolygradError
from polygrad.runtime.threads import get_num_threads
from polygrad.tensor.tensor import Tensor

# The first version of each package that is known to work, and the first that is not (pyproject.toml).
SUPPORTED: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None]] = {
    "llvmlite": ((0, 45), None),
    "numpy": ((1, 26), None),
    "wasmtime": ((50,), (51,)),
    "wgpu": ((0, 32), (0, 33)),
    "cuda-bindings": ((13,), (14,)),
    "nvidia-cuda-nvrtc": ((13,), (14,)),
}

_SIMILARITY = 0.85  # a name this similar to one of ours counts as misspelt
_TESTS = "POLYGRAD_TEST_"  # the prefix of variables of polygrad's own tests


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of `subject`, its level, and a remedy."""

    level: str
    subject: str
    message: str
    remedy: str = ""


def examine(version: str) -> Iterator[Finding]:
    """All findings, in the order in which to read them; those of devices, which take a while, last."""
    yield Finding("ok", "polygrad", f"{version}, {python_version()}")
    for look in (_packages, _environment, _cache, _devices):
        yield from look()


def _packages() -> Iterator[Finding]:
    for name, (first, end) in SUPPORTED.items():
        version = package_version(name)
        if version is None:
            continue
        numbers = version_numbers(version)
        required_version = f"{_version_text(first)} or newer" + (
            f", older than {_version_text(end)}" if end else ""
        )
        if numbers < first or (end is not None and numbers >= end):
            requirement = f"{name}>={_version_text(first)}" + (f",<{_version_text(end)}" if end else "")
            remedy = f'pip install "{requirement}"'
            yield Finding("warning", name, f"{version}, where {required_version} is expected", remedy)
        else:
            yield Finding("ok", name, version)


def version_numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (13, 5) of 13.5rc1."""
    numbers: list[int] = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if digits:
            numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


def _version_text(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _environment() -> Iterator[Finding]:
    for name in sorted(os.environ):
        text = os.environ[name]
        variable = VARIABLES.get(name)
        if variable is None:
            meant = misspelt(name)
            if meant is not None:
                message = f"is no variable of polygrad: did you mean {meant}?"
                yield Finding("warning", name, message, f"set {meant} in its place, or unset it")
            continue
        if not text:
            continue
        try:
            if variable.least is not None:
                parse_integer(name, text, variable.default)
            elif name == "POLYGRAD_THREADS":
                get_num_threads()
        except PolygradError as e:
            _, _, message = str(e).removeprefix("environment variable ").partition(": ")
            message, _, _ = message.partition(": unset it")
            yield Finding("warning", name, message, f"unset it for the default, {variable.default}")
        else:
            if variable.own and name != "DEVICE":  # the devices say how that is
                yield Finding("ok", name, f"{text} ({variable.meaning})")


def misspelt(name: str) -> str | None:
    """The polygrad variable that a misspelt name is closest to, if any."""
    own_variables = [v.name for v in VARIABLES.values() if v.own]
    for meant in (name.upper(), name.upper().removeprefix("POLYGRAD_")):
        close = difflib.get_close_matches(meant, own_variables, 1, _SIMILARITY)
        if close:
            return close[0]
    if name.startswith("POLYGRAD_") and not name.startswith(_TESTS):
        return max(own_variables, key=lambda own: difflib.SequenceMatcher(None, own, name).ratio())
    return None


def _cache() -> Iterator[Finding]:
    folder = cache_directory()
    if folder is None:
        remedy = "set POLYGRAD_CACHE to a folder, and later processes need not compile again"
        yield Finding("note", "cache", "compiled kernels are kept in memory alone", remedy)
        return
    remedy = "set POLYGRAD_CACHE to a folder of yours, or to off for none"
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        if reason := why_not_private(folder):
            yield Finding(
                "warning", "cache", f"{folder} is not used: {reason}", f"chmod 700 {folder}, or {remedy}"
            )
            return
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"polygrad")
    except OSError as e:
        message = f"expected a folder that can be written, got {folder}: {e.strerror or e}"
        yield Finding("warning", "cache", message, remedy)
    else:
        yield Finding("ok", "cache", folder)


def _devices() -> Iterator[Finding]:
    default, reason = default_device()
    if not default:
        reason, _, _ = reason.partition(": unset it")
        yield Finding("error", "default device", reason, "set DEVICE to a device of this host, or unset it")
    for name in Device.known():
        problem = ""
        try:
            Device[name]
        except DeviceError as e:
            problem, level = str(e).removeprefix(f"device {name}: "), "note"
        else:
            problem, level = trial(name), "warning"
        subject = f"device {name}" + (" (the default)" if name == default else "")
        if not problem:
            yield Finding("ok", subject, "computes what it should")
            continue
        remedy = ""
        if name == default:
            other_devices = [other for other in Device.known() if other != name and _works(other)]
            level, remedy = "error", f"meanwhile: DEVICE={other_devices[0]}" if other_devices else ""
        yield Finding(level, subject, problem, remedy)


def trial(name: str) -> str:
    """Run a small computation on a device; returns a description of the fault, or ""."""
    expected = [math.exp(-x) + sum(range(64)) for x in range(8)]
    try:
        ramp = Tensor([[float(x) for x in range(64)]] * 8, device=name)
        actual = ((-ramp[0, :8]).exp() + ramp.sum(1)).tolist()
    except Exception as e:  # any error is a finding
        return f"does not compute: {type(e).__name__}: {e}"
    wrong = [(x, y) for x, y in zip(actual, expected, strict=True) if not abs(x - y) <= 1e-5 * abs(y)]
    return f"computes wrong results: expected {wrong[0][1]:.6f}, got {wrong[0][0]:.6f}" if wrong else ""


def _works(name: str) -> bool:
    try:
        Device[name]
    except DeviceError:
        return False
    return not trial(name)
