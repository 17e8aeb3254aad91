"""The bindings of libpolygrad in Rust, Go and R: their own tests, and that they train the digits to the same
bits as `export.load` does. Of Julia's, which nothing runs here: it parses and agrees with the manifest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from binding_models import write_all
from c_compiler import needs_c_compiler
from c_library import FOLDER, MANIFEST
from language_bindings import JULIA, LANGUAGES, julia_faults, run, start

from polygrad import export

ROOT = FOLDER.parent
BATCH = 64


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("binding_models")
    write_all(folder)
    return folder


@pytest.mark.parametrize("name", LANGUAGES)
@needs_c_compiler
def test_its_own_tests(name: str, files: Path) -> None:
    run(name, "test", POLYGRAD_TEST_FILES=str(files))


@pytest.fixture(scope="module", params=["WASM", "CC", "CPU"])
def digits(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A device, and a folder with what `export_digits.py` wrote for it."""
    folder = tmp_path_factory.mktemp("digits")
    command = [sys.executable, ROOT / "examples" / "export_digits.py", folder, "--epochs", "3"]
    subprocess.run(command, env=os.environ | {"DEVICE": request.param}, check=True)
    return request.param, folder


def trained(folder: Path) -> tuple[bytes, float, float]:
    """The state after the examples' steps, the loss of all images, and the accuracy of those held out."""

    def data(name: str) -> dict[str, np.ndarray]:
        images = np.fromfile(folder / f"{name}_images.u8", np.uint8).reshape(-1, 64)
        return {"images": images, "labels": np.fromfile(folder / f"{name}_labels.i32", np.int32)}

    step = export.load(folder / "training.pgrd", native=True)
    training, held_out = data("train"), data("test")
    for number in np.fromfile(folder / "order.i32", np.int32):
        rows = slice(number * BATCH, (number + 1) * BATCH)
        step.run({name: values[rows] for name, values in training.items()})
    evaluation = export.load(folder / "evaluation.pgrd", native=True)
    for spec in evaluation.parameters:
        evaluation.set_parameter(spec.name, step.parameter(spec.name))
    loss, accuracy = evaluation.run(training)["loss"], evaluation.run(held_out)["accuracy"]
    return step.save(), float(loss.item()), float(accuracy.item())


@pytest.mark.parametrize("name", LANGUAGES)
@needs_c_compiler
def test_digits_are_learned_to_the_same_bits(name: str, digits: tuple[str, Path]) -> None:
    device, folder = digits
    saved, loss, accuracy = trained(folder)
    printed = json.loads(run(name, "digits", folder, "--native"))
    assert (printed["host"], printed["device"]) == (name, device)
    assert export_values(folder / "trained.safetensors") == export_values(saved)
    # Printed with 9 digits.
    assert np.float32(printed["final_loss"]) == np.float32(loss)
    assert np.float32(printed["test_accuracy"]) == np.float32(accuracy)
    assert printed["steps_per_second"] > 0


def export_values(source: Path | bytes) -> dict[str, bytes]:
    """The bytes of each tensor of a safetensors file."""
    data = source if isinstance(source, bytes) else source.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    body = data[8 + size :]
    return {
        name: body[slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"
    }


@pytest.mark.parametrize("name", LANGUAGES)
@needs_c_compiler
def test_a_library_that_is_missing_or_too_old_is_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "old.c").write_text("void *pg_get_api(unsigned version) { return (void *)0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "old.so", "old.c"], cwd=tmp_path, check=True)
    for digits in ("train_images.u8", "train_labels.i32", "test_images.u8", "test_labels.i32", "order.i32"):
        (tmp_path / digits).write_bytes(bytes(64))
    for library, message in [("old.so", "older than this"), ("none.so", "none.so: cannot open")]:
        done = start(name, "digits", tmp_path, POLYGRAD_LIBRARY=str(tmp_path / library))
        assert done.returncode != 0
        assert message in done.stderr and "let POLYGRAD_LIBRARY be its path" in done.stderr


def test_what_the_bindings_declare_is_what_the_manifest_says() -> None:
    command = [sys.executable, ROOT / "scripts" / "generate_bindings.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Julia


def calls_of_julia() -> dict[str, int]:
    """The functions that the declarations call, and how many arguments each takes after the table."""
    text = (JULIA / "src" / "declarations.jl").read_text(encoding="utf-8")
    found = re.findall(r"^function call_(\w+)\(api::pg_api(.*)\)$", text, re.MULTILINE)
    return {name: arguments.count(",") for name, arguments in found}


def test_julia_calls_functions_with_their_arguments() -> None:
    declared = calls_of_julia()
    assert declared == {f["name"]: len(f["params"]) for f in MANIFEST["functions"]}
    text = (JULIA / "src" / "model.jl").read_text(encoding="utf-8")
    used = re.findall(r"call_(\w+)\(api\(\)((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)", text)
    assert len(used) == text.count("call_") > 15
    for name, arguments in used:
        plain = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", "", arguments)  # without nested calls
        assert plain.count(",") == declared[name], name


def test_julia_declares_structs_in_the_order_of_the_header() -> None:
    text = (JULIA / "src" / "declarations.jl").read_text(encoding="utf-8")
    structs = dict(re.findall(r"^struct (\w+)\n((?:    \w+::.*\n)+)end$", text, re.MULTILINE))
    table = [line.strip() for line in structs.pop("pg_api").splitlines()]
    assert table == ["version::UInt32", *(f"{f['name']}::Ptr{{Cvoid}}" for f in MANIFEST["functions"])]
    fields = {name: re.findall(r"(\w+)::", body) for name, body in structs.items()}
    assert fields == {s["name"]: [f["name"] for f in s["fields"]] for s in MANIFEST["structs"]}


def test_julia_uses_constants_and_types_that_are_declared() -> None:
    declared = {v["name"] for group in MANIFEST["constants"] for v in group["values"]} | {"PG_API_VERSION"}
    declared |= {kind["name"] for kind in MANIFEST["handles"] + MANIFEST["structs"]}
    sources = [p for p in (JULIA / "src").glob("*.jl") if p.name != "declarations.jl"]
    text = "\n".join(p.read_text(encoding="utf-8") for p in sources)
    used = set(re.findall(r"\b(?:PG_[A-Z0-9_]+|pg_\w+)\b", text))
    assert used - declared == {"pg_api", "pg_get_api"} and len(used) > 20


def test_julia_parses(tmp_path: Path) -> None:
    assert julia_faults(JULIA) == []
    source = tmp_path / "model.jl"
    source.write_text((JULIA / "src" / "model.jl").read_text(encoding="utf-8").replace("end\n", "", 1))
    assert julia_faults(source) == ["parse-error"]
