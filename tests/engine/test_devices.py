"""The registry of devices: built-in ones, and those that other packages announce."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from polygrad import Device
from polygrad.engine import devices
from polygrad.errors import DeviceError

ROOT = Path(__file__).resolve().parents[2]
TOY = Path(__file__).parent / "toy_device"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the toy's package, installed as any other is."""
    folder, source = tmp_path_factory.mktemp("toy"), tmp_path_factory.mktemp("source") / "toy"
    shutil.copytree(TOY, source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*pip, "--target", str(folder), str(source)], check=True, env=os.environ | {"PYTHONPATH": ""}
    )
    return folder


def run(code: str, *folders: Path) -> str:
    """What Python prints that finds polygrad where this one has, and packages in `folders`."""
    package = Path(devices.__file__).parents[2]
    path = os.pathsep.join(map(str, [package, *folders]))
    env = os.environ | {"PYTHONPATH": path, "DEVICE": ""}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout.strip()


def test_pyproject_announces_the_built_in_devices() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = project["entry-points"][devices.ENTRY_POINTS]
    assert declared == {name: f"{module}:BACKEND" for name, (module, _) in devices._MODULES.items()}


def test_an_unknown_device_is_named_with_those_that_there_are() -> None:
    with pytest.raises(
        DeviceError, match=r"expected one of CPU, CC, WASM, WEBGPU, CUDA, METAL, INTERP\b.*, got 'tpu'"
    ):
        Device.canonical("tpu")


def test_looking_for_packages_is_left_for_when_it_is_needed() -> None:
    code = "import sys, polygrad; polygrad.Tensor([1]).realize(); print('importlib.metadata' in sys.modules)"
    assert run(code) == "False"


@pytest.mark.e2e
def test_a_device_of_another_package_runs_programs(installed: Path) -> None:
    code = """
from polygrad import Device, Tensor
x = Tensor([1.0, 2.0, 3.0], device="toy")
print((x * 2).sum().item(), x.device)
import toy_device.backend
print(toy_device.backend.programs, "TOY" in Device.available(), "BROKEN" in Device.available())
print(type(Device["CPU"]).__name__)
"""
    assert run(code, installed).splitlines() == ["12.0 TOY", "1 True False", "CPURuntime"]


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("BROKEN", "device BROKEN: not available here (No module named 'a_package_that_nobody_has')"),
        ("ODD", "device ODD: expected a Backend, got 'not a backend'"),
    ],
)
def test_a_device_that_does_not_load_says_why(installed: Path, name: str, message: str) -> None:
    code = f"""
from polygrad import Device, errors
try:
    Device[{name!r}]
except errors.DeviceError as e:
    print(e)
"""
    assert message in run(code, installed)


def test_the_package_that_cuda_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = devices._Devices()  # another test may have found one in this process
    for name in ["cuda", *(n for n in sys.modules if n.startswith("cuda."))]:
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    for name in ("renderer.cstyle.cuda_compile", "runtime.cuda.native", "engine.backends.cuda"):
        monkeypatch.delitem(sys.modules, f"polygrad.{name}", raising=False)
    with pytest.raises(
        DeviceError, match=r'device CUDA: not available here .*: pip install "polygrad\[cuda\]"'
    ):
        registry["CUDA"]


@pytest.mark.skipif(sys.platform == "darwin", reason="it is there")
def test_metal_says_that_it_is_macos_s() -> None:
    with pytest.raises(DeviceError, match=rf"device METAL: expected macOS, got {sys.platform}: use CUDA"):
        Device["METAL"]
