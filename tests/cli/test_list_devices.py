"""`python -m polygrad`: the devices of this host, for people and as JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import polygrad
from polygrad import Device
from polygrad.cli.commands import list_devices
from polygrad.cli.hosts import DeviceReport, HostReport, host_report
from polygrad.cli.main import find_commands, main
from polygrad.errors import DeviceError

ROOT = Path(__file__).resolve().parent.parent.parent


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "polygrad", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)


def test_each_device_is_listed_with_what_drives_it_or_why_it_is_missing() -> None:
    report = host_report("1.2.3")
    assert [d.name for d in report.devices] == list(Device.known())
    by_name = {d.name: d for d in report.devices}
    assert (
        by_name["CPU"].available and "llvmlite" in by_name["CPU"].driver and "LLVM" in by_name["CPU"].driver
    )
    assert by_name["CPU"].threads == polygrad.get_num_threads() and by_name["CPU"].vector_bits in (
        128,
        256,
        512,
    )
    assert by_name["WASM"].driver.startswith("wasmtime 50.") and by_name["WASM"].vector_bits == 128
    assert by_name["INTERP"].vector_bits is None and by_name["INTERP"].threads == 1
    for device in report.devices:
        assert device.available or device.reason
        assert not device.reason.startswith("device ")


def test_text_has_available_devices_in_a_table_and_the_others_below() -> None:
    devices = [
        DeviceReport("CPU", True, True, driver="LLVM 20", threads=4, vector_bits=256),
        DeviceReport("WEBGPU", True, False, driver="wgpu 0.32", adapter="GPU Orion"),
        DeviceReport("CUDA", False, False, reason="expected a driver, got none"),
    ]
    text = list_devices.text_of(HostReport("1.2.3", "CPython 3.11", "Linux", "CPU", devices=devices))
    assert text.startswith("polygrad 1.2.3, CPython 3.11, Linux\ndefault device: CPU\n")
    assert re.search(r"^CPU \* +4 +256 bits +LLVM 20$", text, re.MULTILINE)
    assert re.search(r"^WEBGPU +wgpu 0.32 +GPU Orion$", text, re.MULTILINE)
    assert text.endswith("not available:\n  CUDA: expected a driver, got none")


@pytest.mark.e2e
def test_the_process_lists_them_and_json_is_json() -> None:
    done = run(DEVICE="WASM")
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.startswith(f"polygrad {polygrad.__version__}, ") and "\nWASM * " in done.stdout
    found = json.loads(run("devices", "--json", DEVICE="INTERP").stdout)
    assert found["default"] == "INTERP" and found["polygrad"] == polygrad.__version__
    assert {d["name"] for d in found["devices"] if d["is_default"]} == {"INTERP"}


def test_a_default_that_does_not_exist_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("polygrad.cli.hosts.default_device", lambda: ("", "no 'GPU'"))
    assert main("1.2.3", []) == 0
    assert "default device: none: no 'GPU'" in capsys.readouterr().out


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main("1.2.3", ["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for command in find_commands():
        assert command.NAME in text and command.__doc__
        with pytest.raises(SystemExit):
            main("1.2.3", [command.NAME, "--help"])
        assert command.__doc__.splitlines()[0] in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main("1.2.3", ["--version"])
    assert capsys.readouterr().out == "polygrad 1.2.3\n"
    with pytest.raises(SystemExit) as stopped:
        main("1.2.3", ["dance"])
    assert stopped.value.code == 2 and "dance" in capsys.readouterr().err


def test_each_file_is_a_command_and_one_is_the_default() -> None:
    commands = find_commands()
    names = [c.NAME for c in commands]
    assert sorted(names) == sorted(set(names)) and {"devices", "doctor"} <= set(names)
    assert [c.NAME for c in commands if getattr(c, "DEFAULT", False)] == ["devices"]


def test_an_error_of_ours_is_a_line_and_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(options: object) -> int:
        raise DeviceError("device X: expected Y")

    monkeypatch.setattr(list_devices, "run", fail)
    assert main("1.2.3", ["devices"]) == 1
    assert capsys.readouterr().err == "polygrad: device X: expected Y\n"


def test_the_console_script_is_the_module() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.scripts]\npolygrad = "polygrad.__main__:main"\n' in text
