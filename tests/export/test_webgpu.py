"""Exported steps on WEBGPU: run without Python in Node and in a page, on whatever adapter they have, compared
with what Python computes on WEBGPU and on WASM."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapter import needs_adapter
from export.test_javascript import ENTRIES, HERE, Network, classifier, node, write_runs
from javascript_hosts import ROOT, built

from polygrad import Device, Tensor, TinyJit, Variable, compile_step, export, nn
from polygrad.runtime.parts import part_of, read_header, write_header
from polygrad.runtime.program import MAGIC, VERSION

pytestmark = [pytest.mark.e2e, built, needs_adapter]
needs_package = pytest.mark.skipif(
    not (ROOT / "node_modules" / "webgpu").exists(), reason="there is no npm package webgpu"
)
RNG = np.random.default_rng(1)
X = (np.arange(40) % 7 / 7).astype(np.float32).reshape(2, 20)


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`on("WEBGPU")`: Tensors are made there."""
    return lambda device: monkeypatch.setattr(Device, "DEFAULT", device)


def floats(text: str) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(text), np.float32)


def run_in_node(path: Path, runs: list[dict[str, np.ndarray]], entry: str = "esm") -> Any:
    return node(HERE / "run_exported.mjs", ENTRIES[entry], path, write_runs(path.with_suffix(".runs"), runs))


def train(device: str, path: Path, batches: list[dict[str, np.ndarray]]) -> list[float]:
    """Losses of an Adam step with dropout, which is saved before the first of them."""
    Tensor.manual_seed(5)
    model = Network()
    opt = nn.optim.Adam(nn.state.get_parameters(model), 0.01)
    step = compile_step(lambda m, x, y: m(x).cross_entropy(y), model, opt, *batches[0].values())
    step.save(path)
    return [step.run(*batch.values()).item() for batch in batches]


@needs_package
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_training_step_in_node_agrees_within_1e_5_and_is_one_submit(
    entry: str, tmp_path: Path, on: Callable[[str], None]
) -> None:
    batches = [
        {
            "x": RNG.standard_normal((8, 20)).astype(np.float32),
            "y": RNG.integers(0, 4, 8, dtype=np.int32),
        }
        for _ in range(4)
    ]
    losses, seen = {}, {}
    for device in ("WASM", "WEBGPU"):
        on(device)
        path = tmp_path / f"{device}.pgrd"
        losses[device] = train(device, path, batches)
        seen[device] = run_in_node(path, batches, entry)
        got = [floats(outputs["loss"])[0] for outputs in seen[device]["outputs"]]
        np.testing.assert_allclose(got, losses[device], rtol=1e-5)
    np.testing.assert_allclose(losses["WEBGPU"], losses["WASM"], rtol=1e-5)
    assert len(set(losses["WEBGPU"])) == len(batches)
    assert seen["WASM"]["submitted"] == [0] * len(batches)
    assert seen["WEBGPU"]["submitted"] == [1 + 1] * len(batches)  # the step, and the copy that reads the loss
    parameters = {device: found["parameters"] for device, found in seen.items()}
    assert parameters["WEBGPU"].keys() == parameters["WASM"].keys() >= {"first.weight", "optimizer.m.0"}
    for name in ("first.weight", "last.bias", "optimizer.v.1"):
        got, wanted = floats(parameters["WEBGPU"][name]), floats(parameters["WASM"][name])
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6, err_msg=name)
    key = parameters["WEBGPU"]["random.key"]
    assert len(key) > 0 and key == parameters["WASM"]["random.key"]


@needs_package
def test_a_file_for_several_devices_runs_on_the_gpu_or_where_it_is_told_to(
    tmp_path: Path, on: Callable[[str], None]
) -> None:
    batches = [{"x": X[:, :20], "y": np.int32([1, 3])} for _ in range(3)]
    paths = {device: tmp_path / f"{device}.pgrd" for device in ("WEBGPU", "WASM")}
    for device, path in paths.items():
        on(device)
        train(device, path, batches)
    both = tmp_path / "both.pgrd"
    export.combine(list(paths.values()), both)
    for device, path in paths.items():
        runs = write_runs(tmp_path / "runs", batches)
        seen, alone = (
            node(HERE / "run_exported.mjs", ENTRIES["esm"], file, runs, *more)
            for file, more in ((both, () if device == "WEBGPU" else ("1", device)), (path, ()))
        )
        assert (seen["submitted"][0] > 0) == (device == "WEBGPU")
        assert (seen["outputs"], seen["saved"]) == (alone["outputs"], alone["saved"])
    assert export.load(both).program.device == "WEBGPU"
    assert export.load(both, device="WASM").program.device == "WASM"


@needs_package
def test_variables_and_small_dtypes_in_node(tmp_path: Path, on: Callable[[str], None]) -> None:
    """Grids and uniform buffers follow a Variable; elements of less than a word come back as they are."""
    on("WEBGPU")
    n = Variable("n", 1, 600)
    jit = TinyJit(
        lambda x: {
            "twice": x * 2 + n,
            "sum": x.sum(),
            "above": x > 3,
            "half": (x / 4).half(),
            "long": x.cast("int64") * 3_000_000_000,
        }
    )
    memory = Tensor(np.arange(600, dtype=np.int32)).realize()
    for size in (5, 7):
        jit(memory[: n.bind(size)])
    jit.save(tmp_path / "v.pgrd")
    runs = [RNG.integers(-9, 9, size, dtype=np.int32) for size in (1, 600, 37, 37)]
    seen = run_in_node(tmp_path / "v.pgrd", [{"x": x} for x in runs])
    loaded = export.load(tmp_path / "v.pgrd")
    for x, outputs in zip(runs, seen["outputs"], strict=True):
        wanted = {
            "twice": x * 2 + len(x),
            "sum": x.sum(dtype=np.int32),
            "above": x > 3,
            "half": (x / 4).astype(np.float16),
            "long": x.astype(np.int64) * 3_000_000_000,
        }
        for name, value in wanted.items():
            assert outputs[name] == value.tobytes().hex(), name
            np.testing.assert_array_equal(loaded.run(x=x)[name].numpy(), value)
    assert seen["submitted"] == [1 + 5] * len(runs)


@needs_package
def test_what_the_adapter_cannot_do_is_refused_in_node(tmp_path: Path, on: Callable[[str], None]) -> None:
    on("WEBGPU")
    path = tmp_path / "c.pgrd"
    classifier(path)
    good = path.read_bytes()
    _, header, rest = read_header(memoryview(good), MAGIC, (VERSION,), "c.pgrd")

    def refused(change: Callable[[Any], None], replace: tuple[bytes, bytes] = (b"", b"")) -> str:
        changed = json.loads(json.dumps(header))
        change(changed)
        body, end = [], 0
        for kernel in changed["kernels"]:
            text = bytes(rest[end : end + kernel["code"]["bytes"]])
            end += len(text)
            body.append(text.replace(*replace) if replace[0] else text)
            kernel["code"] = part_of([body[-1]])
        path.write_bytes(b"".join((write_header(MAGIC, VERSION, changed, 0), *body, rest[end:])))
        with pytest.raises(AssertionError) as caught:
            run_in_node(path, [{"x": X}])
        return str(caught.value)

    def widen(header: Any) -> None:
        header["kernels"][0]["workgroup"] = [1024, 1, 1]

    assert "ProgramError: load: kernel" in refused(widen) and "invocations in a workgroup" in refused(widen)
    assert "CompileError: kernel" in refused(lambda header: None, (b"fn ", b"fm "))

    def relabel(header: Any) -> None:
        header["kernels"][0]["language"] = "msl"

    assert "expected wgsl, got msl" in refused(relabel)

    def count_on_lanes(header: Any) -> None:
        header["kernels"][0]["subgroup"] = 32

    assert "expected subgroups of 32 invocations, got" in refused(count_on_lanes)
    first = b"struct Arguments {"
    said = refused(lambda header: None, (first, b"enable f16;".ljust(len(first))))
    assert "expected an adapter with the feature shader-f16" in said and "WEBGPU_F16=0" in said


def test_a_page_runs_an_exported_classifier_on_its_gpu_within_1e_5(
    tmp_path: Path, on: Callable[[str], None]
) -> None:
    on("WEBGPU")
    jit = classifier(tmp_path / "c.pgrd")
    seen = node(HERE / "page.mjs", tmp_path / "c.pgrd")
    assert seen["complaints"] == []
    np.testing.assert_allclose(seen["logits"], jit(Tensor(X))["logits"].numpy().ravel(), rtol=1e-5)
    assert seen["submits"] == 1 + 2  # the step, and the copies that read its two results
