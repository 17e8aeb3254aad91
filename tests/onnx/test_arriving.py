"""Models whose files arrive in pieces: they are what `load` makes of the whole files, or the same error."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_fuzz
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import FLOAT, model

import polygrad.onnx
from polygrad.errors import OnnxError, PolygradError
from polygrad.onnx import arriving
from polygrad.onnx.arriving import ArrivingModel
from polygrad.onnx.instance import Instance
from polygrad.onnx.wire_writer import varint

ROOT = Path(__file__).resolve().parents[2]
X = np.linspace(-1, 1, 12, dtype=np.float32)


@pytest.fixture(autouse=True)
def all_tensors_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arriving, "LEAST_STREAMED", 4)


def arrived(
    data: bytes,
    size: int = 1 << 30,
    is_known: bool = True,
    files: dict[str, bytes] | None = None,
    device: str | None = None,
) -> Instance:
    """A model that arrives in pieces of `size` bytes. `is_known`: whether the lengths of files are."""
    loading = ArrivingModel(device)

    def send(number: int, content: bytes) -> None:
        loading.begin(number, len(content) if is_known else None)
        for i in range(0, len(content), size):
            loading.feed(number, content[i : i + size])

    send(0, data)
    for i, name in enumerate(loading.external()):
        send(i + 1, (files or {})[name])
    return loading.finish()


def same(one: Instance, other: Instance) -> None:
    """Both have the same parameters, to the last bit, and inputs."""
    assert list(one.parameters) == list(other.parameters)
    for name, tensor in one.parameters.items():
        twin = other.parameters[name]
        assert (tensor.shape, tensor.dtype, tensor.device) == (twin.shape, twin.dtype, twin.device)
        assert bytes(tensor.data()) == bytes(twin.data()), name
    assert (one.inputs, one.outputs, one.ops) == (other.inputs, other.outputs, other.ops)


def weighted(tensor: TensorProto | np.ndarray[Any, Any]) -> bytes:
    """y = x + w."""
    weight = tensor if isinstance(tensor, TensorProto) else numpy_helper.from_array(tensor, "w")
    return model([helper.make_node("Add", ["x", "w"], ["y"])], ["x"], ["y"], [weight])


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 30])
def test_a_model_is_that_of_the_whole_file_however_it_arrives(size: int, is_known: bool, device: str) -> None:
    data = (ROOT / "examples" / "data" / "digits.onnx").read_bytes()
    whole, found = polygrad.onnx.load(data, device), arrived(data, size, is_known, device=device)
    same(found, whole)
    image = np.random.default_rng(0).random((2, 1, 8, 8), np.float32)
    given, want = (m(image=image)["probabilities"].tolist() for m in (found, whole))
    assert given == want


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "float64", "int8", "uint8", "int32", "int64", "bool"]
)
def test_elements_of_each_type(dtype: str) -> None:
    data = weighted(np.resize(X * 3, 1200).astype(dtype))  # more than integers that are constants have
    same(arrived(data, 5), polygrad.onnx.load(data))


@pytest.mark.parametrize("element", [TensorProto.INT4, TensorProto.FLOAT8E4M3FNUZ, TensorProto.BFLOAT16])
def test_elements_that_are_converted(element: int) -> None:
    raw = bytes(range(6)) if element == TensorProto.INT4 else bytes(range(24))[: 12 if element == 18 else 24]
    data = weighted(helper.make_tensor("w", element, [12], raw, raw=True))
    found, whole = arrived(data, 5), polygrad.onnx.load(data)
    assert {n: t.tolist() for n, t in found.parameters.items()} == {
        n: t.tolist() for n, t in whole.parameters.items()
    }


def external(
    name: str, location: str, shape: tuple[int, ...], element: int = FLOAT, **more: int
) -> TensorProto:
    tensor = TensorProto(name=name, data_type=element, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def sums(*tensors: TensorProto) -> bytes:
    """y = x + each, as floats."""
    nodes, value = [], "x"
    for i, tensor in enumerate(tensors):
        nodes.append(helper.make_node("Cast", [tensor.name], [f"f{i}"], to=FLOAT))
        nodes.append(helper.make_node("Add", [value, f"f{i}"], [f"s{i}"]))
        value = f"s{i}"
    return model([*nodes, helper.make_node("Identity", [value], ["y"])], ["x"], ["y"], list(tensors))


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("size", [1, 5, 1 << 30])
def test_external_data_in_any_order_shared_and_of_any_kind(size: int, is_known: bool) -> None:
    rng = np.random.default_rng(1)
    one, two = rng.bytes(100), rng.random(12, np.float32).tobytes()
    data = sums(
        external("late", "one.bin", (12,), TensorProto.FLOAT16, offset=52, length=24),
        external("early", "one.bin", (3, 4), TensorProto.UINT8, offset=2, length=12),
        external("again", "one.bin", (12,), TensorProto.INT8, offset=4, length=12),
        external("flags", "one.bin", (12,), TensorProto.BOOL, offset=20, length=12),
        external("nibbles", "one.bin", (12,), TensorProto.UINT4, offset=94, length=6),
        external("none", "one.bin", (0,), TensorProto.FLOAT, offset=100, length=0),
        external("whole", "two.bin", (12,)),
    )
    data = data.replace(b"none", b"n0ne")  # an initializer that no node reads
    files = {"one.bin": one, "two.bin": two}
    same(arrived(data, size, is_known, files), polygrad.onnx.load(data, files=files))


def test_external_data_beyond_its_file_is_named() -> None:
    data = sums(external("w", "w.bin", (12,), offset=4))
    for is_known in (True, False):
        with pytest.raises(OnnxError, match=r"'w': external data from byte 4, 48 bytes: its file has 51"):
            arrived(data, 10, is_known, {"w.bin": bytes(51)})
    many = [external(f"w{i}", "w.bin", (12,)) for i in range(17)]
    with pytest.raises(OnnxError, match=r"w\.bin: tensors take the external data more than 16 times"):
        arrived(sums(*many), 10, True, {"w.bin": bytes(48)})
    for wrong in ({"offset": -1}, {"length": -1}):
        with pytest.raises(OnnxError, match="external data from byte"):
            arrived(sums(external("w", "w.bin", (12,), **wrong)), 10, True, {"w.bin": bytes(48)})


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def with_tensor(content: bytes) -> bytes:
    """The model y = x + w, whose initializer has these bytes."""
    whole = onnx.ModelProto()
    whole.ParseFromString(weighted(X))
    graph = whole.graph
    del graph.initializer[:]
    parts = graph.SerializeToString() + field(5, content)
    whole.ClearField("graph")
    return whole.SerializeToString() + field(7, parts)


def test_fields_of_a_tensor_in_another_order() -> None:
    raw, dims, kind, name = field(9, X.tobytes()), bytes([8, 12]), bytes([16, FLOAT]), field(8, b"w")
    for content in (raw + dims + kind + name, kind + raw + name + dims, dims + kind + raw + name):
        data = with_tensor(content)
        same(arrived(data, 3), polygrad.onnx.load(data))
    data = with_tensor(dims + kind + raw + bytes([16, TensorProto.INT32]) + name)
    with pytest.raises(OnnxError, match="'w': its element type was given after its elements"):
        arrived(data, 3)
    two = with_tensor(dims + kind + raw + name + field(9, X[::-1].tobytes()))  # the last one counts
    same(arrived(two, 3), polygrad.onnx.load(two))


def test_large_initializers_are_not_in_memory_beside_the_device() -> None:
    weight = numpy_helper.from_array(np.ones((8, 1 << 20), np.float32), "w")
    data = model([helper.make_node("Identity", ["w"], ["y"])], [], ["y"], [weight])
    view = memoryview(data)
    loading = ArrivingModel("CPU")
    loading.begin(0, len(data))
    tracemalloc.start()
    for i in range(0, len(data), 1 << 20):
        loading.feed(0, bytes(view[i : i + (1 << 20)]))
    instance = loading.finish()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 << 20 < len(data)
    assert instance()["y"].sum().item() == 8 << 20


def outcome(load: Any, *args: Any) -> tuple[str, Any]:
    try:
        instance = load(*args)
    except PolygradError as e:
        return type(e).__name__, None
    return "", [bytes(t.data()) for t in instance.parameters.values()]


def test_changed_bytes_are_an_error_where_they_are_one_in_the_whole_file() -> None:
    rng = random.Random(0)
    files = [
        weighted(X),
        onnx_fuzz.nested(2),
        (ROOT / "examples" / "data" / "digits.onnx").read_bytes()[:3000],
    ]
    kinds = set()
    for _ in range(400):
        data = bytearray(rng.choice(files))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data))
            number = rng.choice([*onnx_fuzz.NUMBERS, bytes([rng.randrange(256)])])
            data[at : at + rng.choice([0, len(number)])] = number
        if rng.random() < 0.2:
            data = data[: rng.randrange(len(data))]
        whole = outcome(polygrad.onnx.load, bytes(data))
        for size, is_known in ((3, True), (50, False)):
            found = outcome(arrived, bytes(data), size, is_known)
            assert found == whole, bytes(data).hex()
        kinds.add(whole[0])
    assert kinds >= {"", "OnnxError"}


@pytest.mark.parametrize("tag", [0x00, 0x05, 0xFB, 0xFC, 0xFE, 0xFF])  # no number, or a kind that is none
def test_a_tag_that_is_none_is_the_error_of_the_whole_file(tag: int) -> None:
    bad = varint(tag) + bytes(4)
    for data in (weighted(X) + bad, bad + weighted(X), with_tensor(bad)):
        with pytest.raises(OnnxError, match=f"tag {tag} is not a field of a message") as whole:
            polygrad.onnx.load(data)
        with pytest.raises(OnnxError) as found:
            arrived(data, 3)
        assert str(found.value) == str(whole.value)


def test_more_or_fewer_bytes_than_were_said_are_an_error() -> None:
    data = weighted(X)
    for size in (len(data) - 1, len(data) + 1):
        loading = ArrivingModel()
        loading.begin(0, size)
        with pytest.raises(OnnxError):
            loading.feed(0, data)
            loading.finish()
