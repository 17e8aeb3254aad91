"""`python -m polygrad doctor`: what is wrong is found, with what to do; the status says whether the default
device works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from polygrad import Device
from polygrad.cli import examination
from polygrad.cli.commands.doctor import text_of, works
from polygrad.cli.examination import SUPPORTED, Finding, examine, misspelt, trial, version_numbers
from polygrad.engine.devices import _Devices
from polygrad.errors import DeviceError

ROOT = Path(__file__).resolve().parent.parent.parent


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "polygrad", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)


def found(subject: str) -> Finding:
    return next(f for f in examine("1.2.3") if f.subject.split(" (")[0] == subject)


@pytest.mark.e2e
def test_where_all_is_well_the_status_is_0(tmp_path: Path) -> None:
    done = run(POLYGRAD_CACHE=str(tmp_path), DEVICE="CPU")
    assert done.returncode == 0, done.stdout
    assert re.search(r"^ok +device CPU \(the default\): computes what it should$", done.stdout, re.MULTILINE)
    assert re.search(r"^ok +device WASM: computes what it should$", done.stdout, re.MULTILINE)
    assert f"ok    cache: {tmp_path}" in done.stdout
    assert done.stdout.rstrip().endswith("the default device works")


@pytest.mark.e2e
def test_a_default_device_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    done = run("--json", DEVICE="GPU", POLYGRAD_CACHE=str(tmp_path))
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    errors = [f for f in answer["findings"] if f["level"] == "error"]
    assert not answer["works"] and len(errors) == 1
    assert "DEVICE" in errors[0]["message"] and "'GPU'" in errors[0]["message"] and errors[0]["remedy"]


@pytest.mark.e2e
def test_a_variable_with_a_wrong_value_is_named(tmp_path: Path) -> None:
    done = run(DEBUG="abc", POLYGRAD_THREADS="0", POLYGRAD_CACHE=str(tmp_path))
    assert done.returncode == 1  # nothing computes with such a value
    assert "WARN  DEBUG: expected an integer from 0, got 'abc'" in done.stdout
    assert "WARN  POLYGRAD_THREADS: expected an integer from 1 to 1024, got '0'" in done.stdout


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("POLYGRAD_DEVCE", "DEVICE"),
        ("POLYGRAD_DEVICE", "DEVICE"),
        ("POLYGRAD_CACHE_DIR", "POLYGRAD_CACHE"),
        ("POLYGRAD_NUM_THREADS", "POLYGRAD_THREADS"),
        ("DEVCE", "DEVICE"),
        ("NOPT", "NOOPT"),
        ("debug", "DEBUG"),
        ("HOME", None),
        ("PATH", None),
        ("CXX", None),
        ("LANG", None),
        ("POLYGRAD_TEST_WHEEL", None),
    ],
)
def test_names_that_are_near_to_ours_are_found(name: str, meant: str | None) -> None:
    assert misspelt(name) == meant


def test_a_misspelt_name_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYGRAD_DEVCE", "WASM")
    finding = found("POLYGRAD_DEVCE")
    assert finding.level == "warning" and "did you mean DEVICE?" in finding.message


def test_a_cache_that_cannot_be_written_is_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("POLYGRAD_CACHE", str(tmp_path / "file" / "cache"))
    finding = found("cache")
    assert (
        finding.level == "warning" and str(tmp_path) in finding.message and "POLYGRAD_CACHE" in finding.remedy
    )
    monkeypatch.setenv("POLYGRAD_CACHE", "0")
    assert found("cache").level == "note"


def test_an_old_package_is_a_warning_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"llvmlite": "0.44.0", "wasmtime": "51.0.0", "numpy": "2.0.1"}
    monkeypatch.setattr(examination, "package_version", versions.get)
    assert found("llvmlite").remedy == 'pip install "llvmlite>=0.45"'
    assert found("wasmtime").remedy == 'pip install "wasmtime>=50,<51"'
    assert found("numpy").level == "ok"


def test_the_supported_versions_are_those_of_pyproject() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name, (first, end) in SUPPORTED.items():
        dotted = ".".join(map(str, first))
        exact = f'"{name}=={dotted}.*' in text
        assert exact if end else f'"{name}>={dotted}' in text, name
        assert end is None or end == (*first[:-1], first[-1] + 1)


def test_version_numbers() -> None:
    assert version_numbers("0.45.1") == (0, 45, 1)
    assert version_numbers("13.5rc1") == (13, 5)
    assert version_numbers("2024") == (2024,) and version_numbers("dev") == ()


def test_a_default_device_that_fails_is_an_error_and_another_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = examination.trial
    monkeypatch.setattr(examination, "trial", lambda name: "no luck" if name == "CPU" else real(name))
    monkeypatch.setattr(Device, "_default", "CPU")
    findings = list(examine("1.2.3"))
    (error,) = [f for f in findings if f.level == "error"]
    assert error.subject == "device CPU (the default)" and error.message == "no luck"
    assert error.remedy.startswith("meanwhile: DEVICE=") and not works(findings)
    assert f"ERROR {error.subject}: no luck\n      -> meanwhile" in text_of(findings)


def test_a_missing_device_is_a_note_unless_it_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = _Devices.__getitem__

    def missing(self: _Devices, name: str) -> object:
        if name == "WASM":
            raise DeviceError("device WASM: not available here: pip install wasmtime")
        return opened(self, name)

    monkeypatch.setattr(_Devices, "__getitem__", missing)
    monkeypatch.setattr(Device, "_default", "CPU")
    assert found("device WASM").level == "note" and "pip install wasmtime" in found("device WASM").message
    monkeypatch.setattr(Device, "_default", "WASM")
    assert found("device WASM").level == "error"


def test_a_device_that_computes_wrong_results_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert trial("INTERP") == ""
    monkeypatch.setattr("polygrad.cli.examination.math.exp", lambda x: 2.0)
    assert trial("INTERP").startswith("computes wrong results: expected 2018.0")
