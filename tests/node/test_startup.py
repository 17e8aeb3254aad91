"""How Node starts Python: from bytecode, then from a snapshot, from bytecode again when anything is off."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ROOT, WHEEL, built

pytestmark = [pytest.mark.e2e, built]

SUM = "from polygrad import Tensor; Tensor([1.0, 2.0, 3.0]).sum().item()"
DIGEST = 32  # bytes before each entry


def start(cache: Path | None, code: str = SUM, **options: Any) -> dict[str, Any]:
    """Start Python in a new process; its origin, the value of `code`, and the stages it told."""
    options = {"cacheDir": str(cache) if cache else False, **options}
    program = f"""
        import {{ loadPolygrad }} from {json.dumps(str(ROOT / "node" / "dist" / "index.js"))};
        const stages = [];
        const onProgress = ({{ stage, fraction }}) => stages.push([stage, fraction]);
        const python = await loadPolygrad({{ ...{json.dumps(options)}, onProgress }});
        const value = python.runPython({json.dumps(code)});
        await python.kept;
        console.log(JSON.stringify({{ origin: python.origin, value, stages }}));
        process.exit();
    """
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", program], capture_output=True, text=True, timeout=120
    )
    # Node quotes the line that threw; Pyodide's is the whole program.
    assert done.returncode == 0, "\n".join(line[:500] for line in done.stderr.splitlines())
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


def snapshot(cache: Path) -> Path:
    """The one that is kept."""
    (found,) = cache.glob("snapshot-*")
    return found


def sealed(payload: bytes) -> bytes:
    """An entry whose digest is right."""
    return hashlib.sha256(payload).digest() + payload


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the snapshot of a first start."""
    cache = tmp_path_factory.mktemp("kept")
    assert start(cache)["origin"] == "bytecode"
    return cache


@pytest.fixture
def cache(kept: Path, tmp_path: Path) -> Path:
    """A copy of it to spoil."""
    return Path(shutil.copytree(kept, tmp_path / "cache"))


def test_the_second_start_is_from_a_snapshot_and_computes_the_same(cache: Path) -> None:
    before = snapshot(cache).stat().st_mtime_ns
    second = start(cache)
    assert (second["origin"], second["value"]) == ("snapshot", 6)
    assert snapshot(cache).stat().st_mtime_ns == before


def test_no_collection_looks_at_what_imports_made(cache: Path) -> None:
    """From bytecode and from a snapshot; what is made later is collected, as ever."""
    code = """
import gc, json, weakref
class Ring: pass
ring = Ring()
ring.itself, seen = ring, weakref.ref(ring)
del ring
gc.collect()
json.dumps([gc.isenabled(), seen() is None, gc.get_freeze_count() > 10_000])
"""
    for origin, folder in (("snapshot", cache), ("bytecode", None)):
        found = start(folder, code)
        assert (found["origin"], json.loads(found["value"])) == (origin, [True, True, True])


def test_progress_is_told_stage_by_stage(cache: Path) -> None:
    for origin, stages in (
        ("snapshot", ["files", "start", "ready"]),
        ("bytecode", ["files", "start", "import", "ready"]),
    ):
        seen = start(cache if origin == "snapshot" else None)
        assert seen["origin"] == origin
        assert [stage for stage, _ in seen["stages"]] == stages
        fractions = [fraction for _, fraction in seen["stages"]]
        assert fractions == sorted(fractions) and (fractions[0], fractions[-1]) == (0, 1)


def test_a_snapshot_holds_no_environment_and_no_random_state(tmp_path: Path) -> None:
    code = "import json, os, random; json.dumps([os.environ.get('SECRET'), random.random()])"
    first = start(tmp_path, code, env={"SECRET": "k7-first-start"})
    assert json.loads(first["value"])[0] == "k7-first-start"
    assert b"k7-first-start" not in snapshot(tmp_path).read_bytes()
    draws = set()
    for env in ({}, {"SECRET": "other"}):
        seen = start(tmp_path, code, env=env)
        assert seen["origin"] == "snapshot"
        secret, draw = json.loads(seen["value"])
        assert secret == env.get("SECRET")
        draws.add(draw)
    assert len(draws) == 2


def test_home_and_the_working_directory_are_those_of_this_start(cache: Path) -> None:
    code = "import os; f'{os.getcwd()} {os.path.expanduser(\"~\")}'"
    assert start(cache, code)["value"] == "/home/pyodide /home/pyodide"
    seen = start(cache, code, env={"HOME": "/home/other"})
    assert (seen["origin"], seen["value"]) == ("snapshot", "/home/other /home/other")


def test_variables_that_python_reads_as_it_starts_are_honoured_without_a_snapshot(cache: Path) -> None:
    seen = start(cache, "import sys; sys.flags.optimize", env={"PYTHONOPTIMIZE": "1"})
    assert (seen["origin"], seen["value"]) == ("bytecode", 1)


@pytest.mark.parametrize(
    "damage",
    [
        "flipped bit",
        pytest.param("cut short", marks=pytest.mark.slow),
        pytest.param("empty file", marks=pytest.mark.slow),
    ],
)
def test_a_damaged_snapshot_is_never_used_and_is_made_anew(cache: Path, damage: str) -> None:
    path = snapshot(cache)
    good = path.read_bytes()
    middle = len(good) // 2
    path.write_bytes(
        {
            "flipped bit": good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :],
            "cut short": good[:middle],
            "empty file": b"",
        }[damage]
    )
    seen = start(cache)
    assert (seen["origin"], seen["value"]) == ("bytecode", 6)
    assert len(snapshot(cache).read_bytes()) == pytest.approx(len(good), rel=0.05)
    assert start(cache)["origin"] == "snapshot"


def of_another_build(payload: bytes) -> bytes:
    """The same snapshot with another build's id in Pyodide's part."""
    (runs,) = struct.unpack_from("<I", payload)
    build_id = 4 * (3 + 2 * runs) + 16  # after the head, the runs, and four words of Pyodide's
    other = bytes(b ^ 255 for b in payload[build_id : build_id + 32])
    return payload[:build_id] + other + payload[build_id + 32 :]


def of_another_memory(payload: bytes) -> bytes:
    """One whose memory is not Python's: all its pages are full of ones."""
    runs, _, state = struct.unpack_from("<III", payload)
    pages = 4 * (3 + 2 * runs) + state
    return payload[:pages] + b"\1" * (len(payload) - pages)


@pytest.mark.parametrize("spoil", [of_another_build, of_another_memory, lambda payload: b"no snapshot" * 9])
def test_a_snapshot_that_does_not_start_gives_way_and_is_not_tried_again(cache: Path, spoil: Any) -> None:
    path = snapshot(cache)
    path.write_bytes(sealed(spoil(path.read_bytes()[DIGEST:])))
    for _ in range(2):
        seen = start(cache)
        assert (seen["origin"], seen["value"]) == ("bytecode", 6)
        assert path.read_bytes() == sealed(b"")


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for _ in range(2):
        seen = start(tmp_path / "file")
        assert (seen["origin"], seen["value"]) == ("bytecode", 6)


@pytest.mark.slow
def test_a_wheel_of_the_callers_is_compiled_once_and_gets_a_snapshot_of_its_own(tmp_path: Path) -> None:
    wheel = tmp_path / "polygrad-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(str(WHEEL)) as built_wheel, zipfile.ZipFile(wheel, "w") as changed:
        for name in built_wheel.namelist():
            data = built_wheel.read(name)
            changed.writestr(name, data + b"\nMARK = 'changed'\n" * (name == "polygrad/preload.py"))
    cache = tmp_path / "cache"
    code = "import polygrad.preload; polygrad.preload.MARK"
    for origin in ("bytecode", "snapshot"):
        seen = start(cache, code, wheel=str(wheel))
        assert (seen["origin"], seen["value"]) == (origin, "changed")
        assert len(list(cache.glob("bytecode-*"))) == 1
    (entry,) = cache.glob("bytecode-*")
    entry.write_bytes(entry.read_bytes()[:-1])
    assert start(cache, code, wheel=str(wheel))["value"] == "changed"
    assert start(cache, code, wheel=str(wheel))["origin"] == "snapshot"
    assert start(cache)["origin"] == "bytecode"  # of the wheel that was built


KERNELS = """
import json
from polygrad import Tensor, compile_step, nn
from polygrad.engine.stats import stats
Tensor.manual_seed(1)
net = nn.Linear(4, 2)
opt = nn.optim.SGD(nn.state.get_parameters(net), lr=0.1)
step = compile_step(lambda m, x: (m(x) ** 2).mean(), net, opt, Tensor.rand(8, 4))
loss = [step.run().item() for _ in range(2)]
json.dumps([loss, stats.kernels_compiled, stats.kernels_found])
"""


def kernels_of(cache: Path, **options: Any) -> tuple[list[float], int, int]:
    """What a start computes; how many kernels it compiled, and found in its cache."""
    loss, compiled, found = json.loads(start(cache, KERNELS, **options)["value"])
    return loss, compiled, found


def test_a_later_start_compiles_no_kernel_and_damaged_ones_anew(tmp_path: Path) -> None:
    loss, compiled, found = kernels_of(tmp_path)
    assert compiled > 3 and found == 0
    assert kernels_of(tmp_path) == (loss, 0, compiled)
    entries = [path for path in (tmp_path / "kernels").rglob("*") if path.is_file()]
    kernels = [path for path in entries if b"PGRD" not in path.read_bytes()]  # which Programs begin with
    assert len(kernels) == compiled < len(entries)
    for path in entries:
        path.write_bytes(path.read_bytes()[:-1])
    assert kernels_of(tmp_path) == (loss, compiled, 0)
    assert kernels_of(tmp_path) == (loss, 0, compiled)


def test_kernels_are_kept_where_the_environment_says_or_nowhere(cache: Path, tmp_path: Path) -> None:
    chosen, before = tmp_path / "chosen", sorted((cache / "kernels").rglob("*"))
    for env, folder in (({"POLYGRAD_CACHE": str(chosen)}, chosen), ({"POLYGRAD_CACHE": "0"}, None)):
        first, second = (kernels_of(cache, env=env) for _ in range(2))
        assert second == ((first[0], 0, first[1]) if folder else first)
        assert sorted((cache / "kernels").rglob("*")) == before
    assert any(chosen.iterdir())


def test_two_processes_keep_the_same_kernels_at_once(cache: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(kernels_of, (cache, cache))
    assert first[0] == second[0]
    assert kernels_of(cache)[1] == 0
    assert not list((cache / "kernels").rglob(".*")), "no temporary file is left"


REST = """
import importlib, json, sys
finder = sys.modules["_polygrad_stdlib"]._finder
from polygrad import Tensor
before = Tensor([1.0]).item(), finder in sys.meta_path
try:
    importlib.import_module("no_such_module")
except ModuleNotFoundError:
    unknown = finder in sys.meta_path
from xml.dom import minidom
from html.parser import HTMLParser
title = minidom.parseString("<a><b>text</b></a>").getElementsByTagName("b")[0].firstChild.data
import inspect
quoted = inspect.getsource(json.loads).startswith("def loads")
json.dumps([before, unknown, title, finder in sys.meta_path, quoted])
"""


@pytest.mark.parametrize("origin", ["bytecode", "snapshot"])
def test_the_rest_of_the_standard_library_comes_when_it_is_imported(cache: Path, origin: str) -> None:
    seen = start(cache if origin == "snapshot" else None, REST)
    assert seen["origin"] == origin
    before, unknown, title, waiting, quoted = json.loads(seen["value"])
    assert before == [1.0, True] and unknown and title == "text"
    assert not waiting and quoted


def test_a_module_of_the_users_hides_one_of_the_rest(cache: Path) -> None:
    code = """
import json, pathlib, sys
pathlib.Path("turtle.py").write_text("MINE = 1")
sys.path.insert(0, "")
import turtle
json.dumps([turtle.MINE, sys.modules["_polygrad_stdlib"]._finder in sys.meta_path])
"""
    assert json.loads(start(cache, code)["value"]) == [1, True]


OURS = {
    *(f"_polygrad_{name}.py" for name in ("applications", "imports", "start", "stdlib")),
    "sitecustomize.py",
}


@pytest.mark.parametrize("origin", ["bytecode", "snapshot"])
def test_the_rest_of_polygrad_comes_when_it_is_imported(cache: Path, origin: str) -> None:
    code = """
import importlib, json, sys
finder = sys.modules["_polygrad_applications"]._finder
from polygrad import Tensor
before = Tensor([1.0]).item(), finder in sys.meta_path
from polygrad import onnx
from polygrad.models.registry import architecture
from polygrad.hf import Tokenizer
json.dumps([before, architecture("LlamaForCausalLM").task, finder in sys.meta_path, onnx.__name__])
"""
    seen = start(cache if origin == "snapshot" else None, code)
    assert seen["origin"] == origin
    assert json.loads(seen["value"]) == [[1.0, True], "causal-lm", False, "polygrad.onnx"]


def test_every_module_of_the_full_library_is_in_the_first_part_or_known_to_be_in_the_rest() -> None:
    """And what starting and a first tensor take is in the first."""
    (first,) = (ROOT / "node" / "dist" / "python").glob("stdlib-*.zip")
    with zipfile.ZipFile(ROOT / "node_modules" / "pyodide" / "python_stdlib.zip") as full:
        modules = {name for name in full.namelist() if name.endswith(".py")}
    with zipfile.ZipFile(first) as part:
        names = set(part.namelist())
    have = {name.removesuffix("c") for name in names} - OURS
    assert have <= modules and {"argparse.py", "asyncio/__init__.py", "json/decoder.py"} <= have
    dotted = {n.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for n in modules - have}
    rest = start(None, "import _polygrad_stdlib; ' '.join(_polygrad_stdlib.REST)")["value"]
    assert set(rest.split()) == dotted


def test_tracebacks_quote_polygrads_own_lines(cache: Path) -> None:
    code = """
import traceback
from polygrad import Tensor
try:
    Tensor([1.0, 2.0]).reshape(3)
except Exception:
    text = traceback.format_exc()
text
"""
    lines = start(cache, code)["value"].splitlines()
    own = [i for i, line in enumerate(lines) if "/lib/polygrad.zip/polygrad/" in line]
    assert own and all(lines[i + 1].startswith("    ") for i in own)


def test_what_the_first_tensor_needs_is_preloaded_but_for_what_opens_the_device(cache: Path) -> None:
    code = """
import sys
before = set(sys.modules)
from polygrad import Tensor
(Tensor([1.0, 2.0]) @ Tensor([1.0, 2.0])).item()
' '.join(sorted(set(sys.modules) - before))
"""
    assert set(start(cache, code)["value"].split()) <= {
        "polygrad.engine.backends.wasm",
        "polygrad.runtime.wasm.js",
        "polygrad_host",
    }
