"""Exported models without Python: in Node and in a page, compared with what Python computes, bit for bit."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from javascript_hosts import ROOT, built, run
from pgrd.corpus import module

from polygrad import Device, Tensor, TinyJit, compile_step, nn, quantize
from polygrad.nn.state import get_state_dict, safe_load
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program, read_program
from polygrad.runtime.wasm.device import WasmRuntime
from polygrad.wasm.opcodes import opcode

pytestmark = [pytest.mark.e2e, built]
HERE = Path(__file__).parent
ENTRIES = {"esm": ROOT / "node/dist/runtime.js", "cjs": ROOT / "node/dist/cjs/runtime.js"}
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def on_wasm() -> Iterator[None]:
    before = Device.DEFAULT
    Device.DEFAULT = "WASM"
    yield
    Device.DEFAULT = before


class Network:
    def __init__(self) -> None:
        self.first, self.last = nn.Linear(20, 16), nn.Linear(16, 4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu().dropout(0.25))


def node(*command: object) -> Any:
    done = subprocess.run(["node", *map(str, command)], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def hexes(tensor: Tensor) -> str:
    return bytes(tensor.data().cast("B")).hex()


def classifier(path: Path) -> Any:
    """A captured classifier, saved to `path`."""
    Tensor.manual_seed(2)
    model = Network()
    jit = TinyJit(lambda x: {"logits": model(x), "label": model(x).argmax(-1)})
    for _ in range(2):
        jit(Tensor.rand(2, 20).realize())
    jit.save(path, model)
    return jit


def write_runs(path: Path, runs: list[dict[str, np.ndarray]]) -> Path:
    path.write_text(json.dumps([{name: x.tobytes().hex() for name, x in r.items()} for r in runs]))
    return path


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_classifier_computes_what_python_does_bit_for_bit(entry: str, tmp_path: Path) -> None:
    jit = classifier(tmp_path / "c.pgrd")
    runs = [{"x": RNG.standard_normal((2, 20)).astype(np.float32)} for _ in range(3)]
    seen = node(
        HERE / "run_exported.mjs", ENTRIES[entry], tmp_path / "c.pgrd", write_runs(tmp_path / "r", runs)
    )
    assert seen["inputs"] == [{"name": "x", "dtype": "float32", "shape": [2, 20]}]
    for given, got in zip(runs, seen["outputs"], strict=True):
        wanted = jit(Tensor(given["x"]))
        assert got == {name: hexes(t) for name, t in wanted.items()}


def test_a_training_step_trains_as_python_does_bit_for_bit(tmp_path: Path) -> None:
    """Adam's state and dropout's random numbers go on where Python stood."""
    Tensor.manual_seed(5)
    model = Network()
    opt = nn.optim.Adam(nn.state.get_parameters(model), 0.01)
    batches = [
        {
            "x": RNG.standard_normal((8, 20)).astype(np.float32),
            "y": RNG.integers(0, 4, 8, dtype=np.int32),
        }
        for _ in range(5)
    ]
    step = compile_step(lambda m, x, y: m(x).cross_entropy(y), model, opt, *batches[0].values())
    for batch in batches[:2]:
        step.run(*batch.values())
    step.save(tmp_path / "t.pgrd")
    seen = node(
        HERE / "run_exported.mjs", ENTRIES["esm"], tmp_path / "t.pgrd", write_runs(tmp_path / "r", batches)
    )
    losses = [hexes(step.run(*batch.values())) for batch in batches]
    assert [x["loss"] for x in seen["outputs"]] == losses
    assert len(set(losses)) == len(losses)
    saved = safe_load(bytes.fromhex(seen["saved"]))
    named = get_state_dict(model) | {f"optimizer.{k}": t for k, t in get_state_dict(opt).items()}
    assert {"optimizer.lr", "optimizer.m.0", "optimizer.b1_t", "first.weight"} <= set(named) & set(saved)
    for name in set(named) & set(saved):
        assert seen["parameters"][name] == hexes(named[name]) == hexes(saved[name]), name


def test_a_model_exported_where_there_are_threads_runs_with_them_and_without(tmp_path: Path) -> None:
    made = run("node", HERE / "threaded.py", cwd=tmp_path, env={"DEVICE": "WASM"}).json()
    assert made["threads"] >= 2
    path = tmp_path / "threaded.pgrd"
    path.write_bytes(bytes.fromhex(made["file"]))
    runs = tmp_path / "runs"
    runs.write_text(json.dumps([{"x": made["x"]}] * 3))
    for threads in (1, 2):
        seen = node(HERE / "run_exported.mjs", ENTRIES["esm"], path, runs, threads)
        assert seen["threads"] == threads
        assert [x["product"] for x in seen["outputs"]] == [made["product"]] * 3


@pytest.mark.parametrize("where", ["javascript", "python"])
def test_products_of_bytes_are_right_from_the_first_run(where: str, tmp_path: Path) -> None:
    """Node 20 compiles dot products of relaxed SIMD wrongly at first, unless the host changes that."""
    Tensor.manual_seed(3)
    model = [nn.Linear(64, 32), nn.Linear(32, 8)]
    quantize(model, "q8_0", activations="int8")
    jit = TinyJit(lambda x: {"y": x.sequential(model)})
    for _ in range(2):
        jit(Tensor.rand(1, 64).realize())
    path = tmp_path / "bytes.pgrd"
    jit.save(path, model)
    if "relaxed-dot" in WasmRuntime().features:
        assert opcode("i32x4.relaxed_dot_i8x16_i7x16_add_s").code in path.read_bytes()
    x = RNG.standard_normal((1, 64)).astype(np.float32)
    if where == "javascript":
        runs = write_runs(tmp_path / "r", [{"x": x}])
        (seen,) = node(HERE / "run_exported.mjs", ENTRIES["esm"], path, runs)["outputs"]
    else:
        seen = node(HERE / "run_in_python.mjs", path, x.tobytes().hex())
    assert seen == {"y": hexes(jit(Tensor(x))["y"])}


@pytest.mark.parametrize("damage", ["cut", "version", "values", "byte"])
def test_a_damaged_file_is_refused_in_node(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "c.pgrd"
    classifier(path)
    good = path.read_bytes()
    program, values = read_program(good)
    bad, text = {
        "cut": (good[:-7], "the file is damaged"),
        "version": (good[:4] + b"\2" + good[5:], "expected version 9, got 2"),
        "values": (program.to_bytes(bytes(values).replace(b"F32", b"F99")), "safetensors: .*F99"),
        "byte": (good[:-1] + bytes([good[-1] ^ 1]), "values: expected bytes of SHA-256"),
    }[damage]
    path.write_bytes(bad)
    command = ["node", str(HERE / "run_exported.mjs"), str(ENTRIES["esm"]), str(path), "none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert re.search(f"ProgramError: .*{text}", done.stderr), done.stderr


@pytest.mark.parametrize("options", [(), ("not-isolated",)])
def test_a_page_runs_an_exported_classifier_from_script(options: tuple[str, ...], tmp_path: Path) -> None:
    jit = classifier(tmp_path / "c.pgrd")
    seen = node(HERE / "page.mjs", tmp_path / "c.pgrd", *options)
    assert seen["complaints"] == []
    assert seen["isolated"] is (options == ())
    x = (np.arange(40) % 7 / 7).astype(np.float32).reshape(2, 20)
    assert seen["shape"] == [2, 4]
    assert np.float32(seen["logits"]).tobytes() == bytes(jit(Tensor(x))["logits"].data().cast("B"))
    assert seen["progress"][-1] == (tmp_path / "c.pgrd").stat().st_size
    assert seen["refused"][0] == "FetchError" and "got status 404" in seen["refused"][1]
    assert 0 < seen["loaded"] <= seen["milliseconds"]
    own = {"/model/index.html", "/model/main.mjs", "/model/model.pgrd", "/nowhere.pgrd"}
    assert set(seen["requests"]) - own <= {
        *("/dist/polygrad-runtime.mjs", "/dist/polygrad-shared.mjs", "/dist/polygrad-cache.mjs"),
        "/favicon.ico",
    }


def bundle(path: Path) -> bytes:
    """A module's code and that of the modules it imports from beside it."""
    parts: dict[Path, bytes] = {}
    todo = [path]
    while todo:
        path = todo.pop()
        if path not in parts:
            parts[path] = path.read_bytes()
            names = re.findall(rb'(?:from|import)\s*"(\./[^"]+)"', parts[path])
            todo += [path.parent / name.decode() for name in names]
    return b"".join(parts.values())


@pytest.mark.parametrize(
    "file", ["web/dist/polygrad-runtime.mjs", "node/dist/runtime.js", "node/dist/cjs/runtime.js"]
)
def test_the_runtime_is_small_and_imports_nothing_but_node(file: str) -> None:
    code = bundle(ROOT / file)
    assert b"ProgramError" in code  # all of it is there
    assert len(gzip.compress(code)) <= 40_000
    imported = set(re.findall(rb'(?:from|import|require\()\s*"([^"]+)"', code))
    assert all(name.startswith((b"./", b"node:")) for name in imported), imported


def test_the_guides_section_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (ROOT / "docs" / "guides" / "saving.md").read_text(encoding="utf-8")
    section = re.search(r"^## Exported models\n(.*)", guide, re.MULTILINE | re.DOTALL)
    assert section is not None
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == ["python", "text", "js", "text"]
    (_, python), (_, printed), (_, script), (_, logged) = blocks
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(python, "saving.md", "exec"), {"__name__": "readme"})
    assert out.getvalue() == printed
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "polygrad").symlink_to(ROOT / "node")
    (tmp_path / "main.mjs").write_text(script)
    done = subprocess.run(["node", "main.mjs"], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (logged, "")


@pytest.mark.parametrize(
    "document",
    ["README.md", "node/README.md", "docs/guides/javascript.md", "docs/guides/saving.md", "CHANGELOG.md"],
)
def test_documents_give_the_size_of_the_runtime(document: str) -> None:
    size = len(gzip.compress(bundle(ROOT / "web/dist/polygrad-runtime.mjs")))
    text = (ROOT / document).read_text(encoding="utf-8")
    stated = re.findall(r"runtime` of the npm package \((\d+) KB|runtime of (\d+) KB", text)
    assert {int(a or b) for a, b in stated} == {round(size / 1000)}


@pytest.mark.parametrize("format", ["esm", "cjs"])
def test_a_run_without_end_ends_with_its_worker(format: str, tmp_path: Path) -> None:
    code = module("f", 1, [0x03, 0x40, 0x0C, 0, 0x0B])  # a loop that branches to its start
    kernel = Kernel("f", code, 1, language="wasm", writes=(0,))
    buffer = BufferSpec(2, "int32", "output", name="x", shape=(2,))
    program = Program("WASM", "test", (buffer,), (kernel,), (Launch(0, (Binding(0),)),))
    (tmp_path / "endless.pgrd").write_bytes(program.to_bytes())
    seen = node(HERE / "ended.mjs", ENTRIES[format], tmp_path / "endless.pgrd")
    assert seen == {"answers": 0, "code": 1}
