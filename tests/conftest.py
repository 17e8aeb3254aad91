"""Settings of all tests: the polygrad under test, devices, hypothesis profiles, golden files.

- `POLYGRAD_TEST_WHEEL=1` (set by `make test`): fail at once unless `polygrad` is the installed wheel.
- `DEVICE=WASM`: the device suite runs on that device alone; without it, on every device of this host (on CC
  and WEBGPU most of it is slow, and left to `make test-all`). Elsewhere a test of many cases has some pairs
  of case and device.
- `HYPOTHESIS_PROFILE=thorough` (set by `make test-all`): four times the examples, others in each run. Without
  it every run has the same ones: a test that passes does so again.
- `POLYGRAD_TEST_GUARDS=1`, `POLYGRAD_TEST_LEFTOVERS=1` (set by `make test-all`): look at what kernels write
  beside buffers (`guarded_memory.py`), and at what a module leaves behind (`leftovers.py`).
- `--bless`: rewrite the golden files instead of comparing with them.
"""

from __future__ import annotations

import difflib
import gc
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

# Each process has the cores to itself only without xdist. The judges' arrays are small: threads of torch and
# numpy would spend the time of other processes waiting for each other. Set before these are imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import guarded_memory
import hypothesis
import leftovers
import numpy as np
import pytest
from adapter import SLOW_WEBGPU, WEBGPU, missing
from c_compiler import CC, SLOW_CC
from device_suite import CORE, cold_cache, skip_float64  # noqa: F401 - a fixture

import polygrad

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = Path(__file__).parent / "golden"

# GPU kernels on the CPU, announced as other packages' devices are. A kernel takes g++ a seventh of a second;
# tests/gpu_emulation has quick ones.
sys.path.append(str(ROOT / "tests" / "gpu_emulation" / "distribution"))
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
needs_cuda_bindings = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None, reason="cuda-bindings is not installed"
)
EMULATED_DRIVER = pytest.param("EMULATED_DRIVER", marks=[needs_gxx, needs_cuda_bindings, pytest.mark.slow])
EMULATED_METAL = pytest.param("EMULATED_METAL", marks=[needs_gxx, pytest.mark.slow])

# Cases of a test after the first few are on one of these devices, in turn.
_ON_ALL_DEVICES, _IN_TURN = 4, ("WASM", "INTERP")

hypothesis.settings.register_profile("default", max_examples=50, deadline=None, derandomize=True)
hypothesis.settings.register_profile("thorough", max_examples=200, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite golden files with what the code makes now")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background job of a shell
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if leftovers.ENABLED:
        leftovers.use_own_temporary_folder()
    if guarded_memory.ENABLED:
        guarded_memory.use()
    if os.environ.get("POLYGRAD_TEST_WHEEL") != "1":
        return
    spec = importlib.util.find_spec("polygrad")
    origin = spec.origin if spec else None
    if origin is None or "site-packages" not in Path(origin).parts:
        raise pytest.UsageError(f"polygrad: expected the installed wheel, got {origin}: run `make test`")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m "e2e ..."` imports the modules that name this mark. Each process imports what it collects, and the
    other modules, with the libraries they compare with, take it longer than the first tests."""
    wanted = config.option.markexpr
    if not wanted.startswith("e2e") or " or " in wanted or collection_path.suffix != ".py":
        return None
    return "e2e" not in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Quick tests first: what starts other processes, and what takes minutes, comes last."""
    skip_float64(items)
    _leave_pairs_to_test_all(items)
    if config.getoption("--bless"):
        items[:] = [item for item in items if "golden" in getattr(item, "fixturenames", ())]
    items.sort(key=lambda item: ("e2e" in item.keywords) + 2 * ("slow" in item.keywords))


def _leave_pairs_to_test_all(items: list[pytest.Item]) -> None:
    """A test of many cases that takes every device runs each case on CPU and, in turn, on WASM or INTERP.
    The other pairs are slow. The device suite has all of them."""
    functions: dict[object, dict[object, int]] = {}
    for item in items:
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            continue
        device = item.callspec.params.get("device")
        if device not in _IN_TURN or "DEVICE" in os.environ or item.path.parent.name == "device":
            continue
        if any("device" in mark.args[0] for mark in item.iter_markers("parametrize")):
            continue
        case = tuple((name, i) for name, i in item.callspec.indices.items() if name != "device")
        cases = functions.setdefault((item.path, item.originalname), {})
        number = cases.setdefault(case, len(cases))
        if number >= _ON_ALL_DEVICES and device == _IN_TURN[number % 2]:
            item.add_marker(pytest.mark.slow)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `device`, and does not say which, runs once on each, or on the one in `DEVICE`."""
    has_devices = any("device" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "device" in metafunc.fixturenames and not has_devices:
        device = os.environ.get("DEVICE")
        cc = CC if metafunc.module.__name__.rpartition(".")[2] in CORE else SLOW_CC
        devices = ["CPU", "WASM", "INTERP", cc]
        if Path(metafunc.module.__file__ or "").parent.name == "device":
            is_core = metafunc.module.__name__.rpartition(".")[2] in CORE
            devices += [EMULATED_DRIVER, *([WEBGPU, EMULATED_METAL] if is_core else [SLOW_WEBGPU])]
        metafunc.parametrize("device", [device.upper()] if device else devices)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is marked `alone` in a process of its own: True, if this is not that process."""
    if pyfuncitem.get_closest_marker("alone") is None or "POLYGRAD_TEST_ALONE" in os.environ:
        return None
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", pyfuncitem.nodeid]
    environment = os.environ | {"POLYGRAD_TEST_ALONE": "1"}
    done = subprocess.run(
        command, cwd=pyfuncitem.config.rootpath, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return True


def pytest_collection_finish() -> None:
    """The collected tests live to the end: without them a collection, and tests ask for many, takes a
    hundredth of a second and not one."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _without_what_others_left() -> None:
    """What the tests of other modules left is not looked through by each collection of this one's."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """In `make test-all` a module leaves no files open, no threads, processes or temporary files."""
    if not leftovers.ENABLED or request.node.get_closest_marker("leaves"):
        yield
        return
    before = leftovers.snapshot()
    yield
    if left := leftovers.since(before):
        pytest.fail("the tests of this module leave behind: " + "; ".join(left))


@pytest.fixture(autouse=True)
def _nothing_is_written_beside_buffers() -> Iterator[None]:
    """With `POLYGRAD_TEST_GUARDS=1`: of those that are freed until the test ends."""
    yield
    if guarded_memory.ENABLED and (written := guarded_memory.violations()):
        pytest.fail("; ".join(written))


@pytest.fixture(autouse=True)
def _adapter(request: pytest.FixtureRequest) -> None:
    """Tests on WEBGPU are skipped where there is no adapter, which is looked for when the first runs."""
    if "needs_adapter" in request.keywords and missing():
        pytest.skip(missing())


@pytest.fixture(autouse=True)
def _random_generators(request: pytest.FixtureRequest) -> None:
    """A module's random generators start anew for each test, which so draws the same numbers by itself, and
    whatever ran before it in its process."""
    if generators := [x for x in vars(request.module).values() if isinstance(x, np.random.Generator)]:
        seeded = np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
        for generator in generators:
            generator.bit_generator.state = seeded.bit_generator.state


@pytest.fixture
def default_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """`device` is the default device of a test that takes it; the seed is 0."""
    old = polygrad.Device.DEFAULT
    if "device" in request.fixturenames:
        polygrad.Device.DEFAULT = request.getfixturevalue("device")
    polygrad.Tensor.manual_seed(0)
    yield
    polygrad.Device.DEFAULT = old


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("name.txt", text)` compares with that file of tests/golden; `make bless` refreshes it."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        text = text.rstrip("\n") + "\n"
        if request.config.getoption("--bless"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"{path.relative_to(ROOT)} does not exist: run `make bless` and review it")
        old = path.read_text(encoding="utf-8")
        if old != text:
            diff = difflib.unified_diff(old.splitlines(), text.splitlines(), "golden", "now", lineterm="")
            pytest.fail("\n".join([f"{path.relative_to(ROOT)} differs; `make bless` accepts it:", *diff]))

    return check
