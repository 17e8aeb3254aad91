"""Captured steps saved to files and run from them, under Python."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polygrad import Device, Tensor, TinyJit, Variable, compile_step, export, nn
from polygrad.errors import (
    ArgumentError,
    CaptureError,
    DTypeError,
    ProgramError,
    ShapeError,
)
from polygrad.nn.state import get_state_dict, safe_load, safe_save
from polygrad.runtime.program import read_program

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def default_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tensors of a test that takes `device` are made there."""
    before = Device.DEFAULT
    Device.DEFAULT = request.getfixturevalue("device") if "device" in request.fixturenames else before
    yield
    Device.DEFAULT = before


class Network:
    def __init__(self) -> None:
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu().dropout(0.25))


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def replayed(function: Any, *args: Any) -> Any:
    """`function` captured."""
    jit = TinyJit(function)
    for _ in range(2):
        jit(*args)
    return jit


def specs(found: Any) -> list[tuple[str, str, tuple[Any, ...]]]:
    return [(x.name, x.dtype.name, x.shape) for x in found]


def training() -> tuple[Any, Any, Any]:
    Tensor.manual_seed(1)
    model = Network()
    opt = nn.optim.Adam(nn.state.get_parameters(model), 0.01)
    x, y = Tensor(array(4, 6)), Tensor([0, 1, 2, 0])
    return compile_step(lambda model, x, y: model(x).cross_entropy(y), model, opt, x, y), model, opt


def test_a_training_step_goes_on_from_its_file_bit_for_bit(device: str, tmp_path: Path) -> None:
    step, model, opt = training()
    batches = [(array(4, 6), RNG.integers(0, 3, 4, dtype=np.int32)) for _ in range(3)]
    for x, y in batches:
        step.run(x, y)
    opt.lr.assign(opt.lr * 0.5)  # follows what was written since the last run
    step.save(tmp_path / "step.pgrd")
    loaded = export.load(tmp_path / "step.pgrd", native=True)
    assert specs(loaded.inputs) == [("x", "float32", (4, 6)), ("y", "int32", (4,))]
    assert specs(loaded.outputs) == [("loss", "float32", ())]
    names = {x.name for x in loaded.parameters}
    state = {f"optimizer.{x}" for x in ("lr", "b1_t", "b2_t", *(f"{s}.{i}" for s in "mv" for i in range(4)))}
    assert names >= {"random.key", "random.position", *get_state_dict(model), *state}
    assert loaded.parameter("optimizer.lr").item() == pytest.approx(0.005)
    for x, y in batches:
        assert step.run(x, y).item() == loaded.run(x=x, y=y)["loss"].item()
    for name, t in get_state_dict(model).items():
        np.testing.assert_array_equal(loaded.parameter(name).numpy(), t.numpy())


def test_inputs_of_a_step_have_the_names_that_are_given_or_numbers(device: str, tmp_path: Path) -> None:
    model = Network()
    opt = nn.optim.SGD(nn.state.get_parameters(model), 0.01)
    x, y = Tensor(array(4, 6)), Tensor([0, 1, 2, 0])
    step = compile_step(lambda model, *xs: model(xs[0]).cross_entropy(xs[1]), model, opt, x, y)
    path = tmp_path / "step.pgrd"
    step.save(path)
    assert [i.name for i in export.load(path, native=True).inputs] == ["input0", "input1"]
    step.save(path, inputs=["images", "labels"])
    loaded = export.load(path, native=True)
    assert [i.name for i in loaded.inputs] == ["images", "labels"]
    assert loaded.run(images=x, labels=y)["loss"].item() == step.run().item()
    for names in (["images"], ["x", "x"]):
        with pytest.raises(ArgumentError, match="expected 2 different names"):
            step.save(path, inputs=names)


def test_saving_changes_nothing(device: str, tmp_path: Path) -> None:
    """A step that is saved after each run draws for dropout, and learns, what one that is not does."""
    x, y = array(4, 6), np.array([0, 1, 2, 0], np.int32)
    losses: dict[bool, list[float]] = {}
    for saves in (False, True):
        step, _, _ = training()
        losses[saves] = []
        for n in range(3):
            losses[saves].append(step.run(x, y).item())
            if saves:
                step.save(tmp_path / f"{n}.pgrd")
    assert losses[True] == losses[False]
    assert len(set(losses[True])) == 3


def test_names_are_those_of_the_function_and_its_results(device: str, tmp_path: Path) -> None:
    Pair = collections.namedtuple("Pair", "low high")
    w = Tensor(array(2)).realize()

    def f(a: Tensor, batch: dict[str, Tensor], *rest: Tensor, scale: Tensor) -> Any:
        found = (a + batch["image"] + rest[0]) * scale * w
        return found, {"logits": found.exp(), "pair": Pair(found - 1, [found + 1])}

    t = [Tensor(array(2)).realize() for _ in range(4)]
    jit = TinyJit(f)
    for _ in range(2):
        jit(t[0], {"image": t[1]}, t[2], scale=t[3])
    jit.save(tmp_path / "f.pgrd")
    loaded = export.load((tmp_path / "f.pgrd").read_bytes(), native=True)
    assert [x.name for x in loaded.inputs] == ["a", "batch.image", "input2", "scale"]
    assert [x.name for x in loaded.outputs] == ["output0", "logits", "pair.low", "pair.high.0"]
    assert [x.name for x in loaded.parameters] == ["param0"]
    a, b, c, d = (x.numpy() for x in t)
    out = loaded.run({"a": a, "batch.image": b, "input2": c.tolist(), "scale": t[3]})
    wanted = (a + b + c) * d * w.numpy()
    np.testing.assert_allclose(out["output0"].numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(out["pair.high.0"].numpy(), wanted + 1, rtol=1e-6)
    jit.save(tmp_path / "f.pgrd", {"scale": w})
    assert [x.name for x in export.load(tmp_path / "f.pgrd", native=True).parameters] == ["scale"]


def test_an_argument_that_is_written_to_stays_as_state(device: str, tmp_path: Path) -> None:
    def count(total: Tensor, x: Tensor) -> Tensor:
        total.assign(total + x)
        return total * 2

    total = Tensor([1.0, 2.0]).realize()
    jit = TinyJit(count)
    for _ in range(3):
        jit(total, Tensor([1.0, 1.0]))
    jit.save(tmp_path / "count.pgrd")
    loaded = export.load(tmp_path / "count.pgrd", native=True)
    assert [x.name for x in loaded.inputs] == ["x"]
    assert loaded.parameter("total").tolist() == [4.0, 5.0]
    assert loaded.run(x=[1.0, 2.0])["output0"].tolist() == [10.0, 14.0]
    assert loaded.parameter("total").tolist() == [5.0, 7.0]
    assert total.tolist() == [4.0, 5.0]


def test_variables_come_from_shapes_or_by_name(device: str, tmp_path: Path) -> None:
    n = Variable("n", 1, 8)
    jit = TinyJit(lambda x: {"twice": x * 2, "sum": x.sum(axis=0)})
    memory = Tensor(array(8, 3)).realize()
    for size in (3, 4):
        jit(memory[: n.bind(size)])
    jit.save(tmp_path / "v.pgrd")
    loaded = export.load(tmp_path / "v.pgrd", native=True)
    assert specs(loaded.inputs) == [("x", "float32", ("n", 3))]
    assert specs(loaded.outputs) == [("twice", "float32", ("n", 3)), ("sum", "float32", (3,))]
    for size in (1, 5, 8):
        x = array(size, 3)
        out = loaded.run(x=x)
        np.testing.assert_array_equal(out["twice"].numpy(), x * 2)
        np.testing.assert_allclose(out["sum"].numpy(), x.sum(axis=0), rtol=1e-5, atol=1e-6)
    with pytest.raises(ArgumentError, match="Variable n from 1 to 8, got 9"):
        loaded.run(x=array(9, 3))
    with pytest.raises(ShapeError, match="n"):
        loaded.run(x=array(5, 3), n=4)


def test_a_variable_that_no_kernel_needs_is_a_size_all_the_same(device: str, tmp_path: Path) -> None:
    """And memory of the captured call's size has room for all sizes."""
    n = Variable("n", 1, 8)
    jit = TinyJit(lambda x: {"first": x[:1] * 2})
    for size in (3, 3):
        jit(Tensor(array(size * 3)).realize().reshape(n.bind(size), 3))
    jit.save(tmp_path / "v.pgrd")
    loaded = export.load(tmp_path / "v.pgrd", native=True)
    assert specs(loaded.inputs) == [("x", "float32", ("n", 3))]
    for size in (1, 8):
        x = array(size, 3)
        np.testing.assert_array_equal(loaded.run(x=x)["first"].numpy(), x[:1] * 2)
    with pytest.raises(ArgumentError, match="Variable n from 1 to 8, got 9"):
        loaded.run(x=array(9, 3))


def test_parameters_are_read_written_saved_and_loaded(device: str, tmp_path: Path) -> None:
    model = Network()
    jit = replayed(lambda x: model(x).softmax(-1), Tensor(array(2, 6)).realize())
    jit.save(tmp_path / "m.pgrd", model)
    loaded = export.load(tmp_path / "m.pgrd", native=True)
    assert {x.name for x in loaded.parameters} == set(get_state_dict(model))
    kept = loaded.save(tmp_path / "values.safetensors")
    for name, t in safe_load(tmp_path / "values.safetensors").items():
        np.testing.assert_array_equal(t.numpy(), get_state_dict(model)[name].numpy())
    x = array(2, 6)
    before = loaded.run(x=x)["output0"].numpy()
    np.testing.assert_array_equal(jit(Tensor(x)).numpy(), before)
    loaded.set_parameter("last.bias", [1.0, 2.0, 3.0])
    assert loaded.parameter("last.bias").tolist() == [1.0, 2.0, 3.0]
    assert np.abs(loaded.run(x=x)["output0"].numpy() - before).max() > 0.01
    loaded.load(kept)
    np.testing.assert_array_equal(loaded.run(x=x)["output0"].numpy(), before)
    for values in ({}, {"other": Tensor([1.0])}):
        with pytest.raises(ProgramError, match="values: expected"):
            loaded.load(safe_save(values))
    with pytest.raises(ArgumentError, match=r"parameter: expected one of .*last\.bias.*, got 'none'"):
        loaded.parameter("none")


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    jit = replayed(lambda x: x + 1, Tensor(array(2, 3)).realize())
    jit.save(tmp_path / "x.pgrd")
    loaded = export.load(tmp_path / "x.pgrd", native=True)
    for inputs, error, text in (
        ({}, ArgumentError, r"expected the inputs \['x'\], got \[\]"),
        (Tensor(array(2, 3)), ArgumentError, r"expected the inputs by name, of \['x'\], got Tensor without"),
        ({"x": array(2, 3), "y": 1}, ArgumentError, "got"),
        ({"x": array(3, 2)}, ShapeError, r"expected shape \(2, 3\)"),
        ({"x": array(6)}, ShapeError, r"x: expected shape \(2, 3\)"),
        ({"x": np.ones((2, 3), np.int32)}, DTypeError, "expected dtype float32, got int32"),
    ):
        with pytest.raises(error, match=text):
            loaded.run(inputs)


def test_what_a_file_cannot_say_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "x.pgrd"
    x = Tensor(array(4, 3)).realize()
    w = Tensor(array(3)).realize()
    with pytest.raises(CaptureError, match="call it twice"):
        TinyJit(lambda x: x + 1).save(path)

    def same(x: Tensor) -> Any:
        y = (x + 1).realize()
        return y, y.T

    for function in (same, lambda x: (x + 1, w), lambda x: (y := x + 1, y)):
        with pytest.raises(ArgumentError, match=r"memory of its own.*clone\(\)"):
            replayed(function, x).save(path)
    with pytest.raises(ArgumentError, match="have the name"):
        replayed(lambda x: {"a": {"b": x + 1}, "a.b": x + 2}, x).save(path)

    n = Variable("n", 1, 4)
    jit = TinyJit(lambda x: x.reshape(-1) * 2)
    for size in (2, 3):
        jit(x[: n.bind(size)])
    with pytest.raises(ArgumentError, match="sizes that are ints or Variables"):
        jit.save(path)
    assert not path.exists()


def test_clones_are_results_of_their_own(device: str, tmp_path: Path) -> None:
    x = Tensor(array(4, 3)).realize()

    def f(x: Tensor) -> dict[str, Tensor]:
        y = x + 1
        return {"a": y, "b": y.clone(), "c": y.T.clone()}

    replayed(f, x).save(tmp_path / "x.pgrd")
    out = export.load(tmp_path / "x.pgrd", native=True).run(x=x)
    for name, wanted in (("a", x.numpy() + 1), ("b", x.numpy() + 1), ("c", x.numpy().T + 1)):
        np.testing.assert_array_equal(out[name].numpy(), wanted)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    model = Network()
    jit = replayed(model, Tensor(array(2, 6)).realize())
    jit.save(tmp_path / "m.pgrd", model)
    good = (tmp_path / "m.pgrd").read_bytes()
    for bad in (good[:100], good[:-1], good + b"\0", b"", b"PGRD" + bytes([2]) + good[5:]):
        with pytest.raises(ProgramError):
            export.load(bad, native=True)
    program, values = read_program(good)
    at = bytes(values).index(b'"dtype":"F32"')

    def with_dtype(name: bytes) -> bytes:
        return program.to_bytes(bytes(values[:at]) + b'"dtype":"' + name + b'"' + bytes(values[at + 13 :]))

    with pytest.raises(ArgumentError, match="no valid dtype, shape and data_offsets"):
        export.load(with_dtype(b"F99"), native=True)
    with pytest.raises(ProgramError, match="values: expected"):
        export.load(with_dtype(b"I32"), native=True)
    program = jit.program
    with pytest.raises(ProgramError, match=r"expected every \w+ to have a name"):
        export.load(program.to_bytes(), native=True)
