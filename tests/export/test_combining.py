"""`combine`: one file of a model for several devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polygrad import Device, Tensor, TinyJit, compile_step, export, nn
from polygrad.errors import ArgumentError, DeviceError, ProgramError
from polygrad.export.files import read_file

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 12
Y = np.int32([0, 1, 2])


@pytest.fixture(autouse=True)
def default_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "DEFAULT", Device.DEFAULT)


def save_training(device: str, path: Path, width: int = 3, seed: int = 7) -> Path:
    """A training step, with dropout, before its first run."""
    Device.DEFAULT = device
    Tensor.manual_seed(seed)
    model = nn.Linear(4, width)
    opt = nn.optim.Adam(nn.state.get_parameters(model), 0.1)
    step = compile_step(lambda m, x, y: m(x).dropout(0.2).cross_entropy(y), model, opt, Tensor(X), Tensor(Y))
    step.save(path)
    return path


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """A training step for CPU and WASM."""
    files = [save_training(device, tmp_path / f"{device}.pgrd") for device in ("CPU", "WASM")]
    export.combine(files, tmp_path / "both.pgrd")
    return tmp_path / "both.pgrd"


def losses(model: export.Model) -> list[float]:
    return [model.run(x=X, y=Y)["loss"].item() for _ in range(5)]


def test_each_target_computes_what_its_own_file_computes(both: Path) -> None:
    for device in ("CPU", "WASM"):
        alone = export.load(both.with_name(f"{device}.pgrd"), native=True)
        model = export.load(both, native=True, device=device)
        assert model.program == alone.program
        assert losses(model) == losses(alone)
        assert model.parameter("weight").tolist() == alone.parameter("weight").tolist()


def test_the_first_target_that_is_allowed_is_used(both: Path) -> None:
    assert export.load(both, native=True).program.device == "CPU"
    assert export.load(both).program.device == "WASM"  # CPU needs native=True
    with pytest.raises(ProgramError, match="load: expected code that is confined"):
        export.load(both, device="CPU")
    with pytest.raises(ProgramError, match="load: expected code for CUDA, got code for CPU and WASM"):
        export.load(both, device="CUDA")


def test_a_device_that_is_missing_is_passed_over(both: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise DeviceError(f"no {name} here")

    monkeypatch.setattr(type(Device), "__getitem__", lambda self, name: missing(name))
    with pytest.raises(ProgramError, match=r"got none: CPU: no CPU here; WASM: no WASM here"):
        export.load(both, native=True)


def test_weights_are_in_the_file_once(tmp_path: Path) -> None:
    w = np.arange(100_000, dtype=np.float32)
    for device in ("CPU", "WASM"):
        kept = Tensor(w, device=device).realize()
        jit = TinyJit(kept.add)
        for _ in range(2):
            jit(Tensor(w, device=device).realize())
        jit.save(tmp_path / device)
    export.combine([tmp_path / "CPU", tmp_path / "WASM"], tmp_path / "both")
    assert (tmp_path / "both").stat().st_size < 1.1 * w.nbytes
    assert export.load(tmp_path / "both").run(x=w)["output0"].tolist() == (w + w).tolist()


def test_a_file_gets_another_target_in_place(both: Path, tmp_path: Path) -> None:
    export.combine([both, save_training("INTERP", tmp_path / "interp.pgrd")], both)
    assert read_file(both)[0].devices == ("CPU", "WASM", "INTERP")
    alone = export.load(tmp_path / "interp.pgrd", native=True)
    assert losses(export.load(both, native=True, device="INTERP")) == losses(alone)


def test_files_of_different_models_are_refused(both: Path, tmp_path: Path) -> None:
    wide = save_training("WASM", tmp_path / "wide.pgrd", width=5)
    trained = save_training("WASM", tmp_path / "trained.pgrd", seed=8)
    for other, message in (
        (wide, r"sources\[1\]: .* other parameters or state"),
        (trained, r"sources\[1\]: .* other parameters or state: export it for each device without training"),
    ):
        with pytest.raises(ArgumentError, match=message):
            export.combine([both, other], tmp_path / "no.pgrd")
    jit = TinyJit(lambda a: a + 1)
    for _ in range(2):
        jit(Tensor(X, device="WASM").realize())
    jit.save(tmp_path / "a.pgrd")
    jit = TinyJit(lambda b: b + 1)
    for _ in range(2):
        jit(Tensor(X, device="CPU").realize())
    jit.save(tmp_path / "b.pgrd")
    with pytest.raises(ArgumentError, match="targets of which one has another 'a', or none"):
        export.combine([tmp_path / "a.pgrd", tmp_path / "b.pgrd"], tmp_path / "no.pgrd")
    assert not (tmp_path / "no.pgrd").exists()


@pytest.mark.parametrize("sources", [[], "file.pgrd", b"PGRD"])
def test_sources_are_a_list_of_files(sources: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="combine: sources: expected a list of exported files"):
        export.combine(sources, tmp_path / "no.pgrd")


def test_a_damaged_file_leaves_the_one_that_is_there(both: Path) -> None:
    before = both.read_bytes()
    (both.parent / "cut.pgrd").write_bytes(before[:-1])
    with pytest.raises(ProgramError, match="damaged"):
        export.combine([both, both.parent / "cut.pgrd"], both)
    assert both.read_bytes() == before
