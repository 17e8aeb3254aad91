"""Packed weights: the numbers of each kind, what a layer asks of them, and models that have them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from packed_weights import KINDS, PACKED, READ_ONLY, numbers, some_packed

import polygrad
from polygrad import Tensor, TinyJit, compile_step, nn
from polygrad.errors import ArgumentError, ShapeError
from polygrad.nn.state import get_parameters, get_state_dict, load_state_dict, model_to, safe_load, safe_save

pytestmark = pytest.mark.usefixtures("default_device")


class Model:
    def __init__(self) -> None:
        self.embedding = nn.Embedding(20, 64)
        self.layers = [nn.Linear(64, 96), nn.Linear(96, 64, bias=False)]
        self.head = nn.Linear(64, 20, bias=False)
        self.head.weight = self.embedding.weight

    def __call__(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        return self.head(x + self.layers[1](self.layers[0](x).relu()))


@pytest.mark.parametrize("kind", PACKED)
def test_zeros_and_numbers_that_are_kept_exactly(kind: str) -> None:
    x = np.zeros((3, 64), np.float32)
    x[1] = np.tile([-8, 7], 32)
    x[2] = 5.0
    got = nn.PackedWeight.of(Tensor(x), kind).dense().numpy()
    assert (got[0] == 0).all()
    np.testing.assert_allclose(got, x, rtol=0.07)
    np.testing.assert_allclose(got[2], 5.0, rtol=1e-3)


@pytest.mark.parametrize("kind", ["int8", "int4", "q4_k", "q8_0"])
def test_several_matrices(kind: str) -> None:
    packed = some_packed(kind, 3, 8)
    dense = packed.dense().numpy()
    assert packed.shape == dense.shape == (3, 8, 256)
    np.testing.assert_array_equal(packed[Tensor([2, 0])].numpy(), dense[[2, 0]])
    x = numbers(4, 256)
    np.testing.assert_allclose(
        Tensor(x).dot(packed.transpose(1, 2)).numpy(), x @ dense.swapaxes(1, 2), rtol=1e-4, atol=1e-3
    )


@pytest.mark.parametrize("kind", READ_ONLY + [k for k in PACKED if KINDS[k].nbytes])
def test_bytes_are_those_of_ggml_but_for_scales_of_six_bits(kind: str) -> None:
    found = KINDS[kind]
    more = {"q3_k": 4, "q4_k": 4, "q5_k": 4}.get(kind, 0)
    assert found.block is not None
    assert some_packed(kind, 5).nbytes() == 5 * 256 // found.block * (found.nbytes + more)


@pytest.mark.parametrize("kind", PACKED)
def test_a_model_is_packed_in_place(device: str, kind: str) -> None:
    model, tokens = Model(), Tensor([[1, 2, 3], [19, 5, 0]])
    before = model(tokens).numpy()
    assert polygrad.quantize(model, kind, activations="float32") is model
    assert model.head.weight is model.embedding.weight
    after = model(tokens).numpy()
    assert 0 < abs(after - before).max() < 0.2 * abs(before).max()
    unpacked = copy.deepcopy(model)
    for layer in (unpacked.embedding, unpacked.head, *unpacked.layers):
        layer.weight = layer.weight.dense()
    expected = unpacked(tokens).numpy()
    assert abs(after - expected).max() < 1e-5 * abs(expected).max()


def test_planes_are_saved_and_not_trained(tmp_path: Any) -> None:
    model = polygrad.quantize(Model(), "int4", skip="layers.1")
    names = list(get_state_dict(model))
    assert names == [
        *(f"embedding.weight.{plane}" for plane in ("scales", "zeros", "bits")),
        *(f"layers.0.weight.{plane}" for plane in ("scales", "zeros", "bits")),
        "layers.0.bias",
        "layers.1.weight",
    ]
    assert [id(p) for p in get_parameters(model)] == [id(model.layers[0].bias), id(model.layers[1].weight)]
    other, tokens = polygrad.quantize(Model(), "int4", skip=["layers.1"]), Tensor([[1, 2]])
    assert (other(tokens).numpy() != model(tokens).numpy()).any()
    safe_save(get_state_dict(model), tmp_path / "model.safetensors")
    load_state_dict(other, safe_load(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(other(tokens).numpy(), model(tokens).numpy())


@pytest.mark.parametrize("kind", ["int8", "q4_1", "fp8"])
def test_copies_and_conversions_keep_the_numbers(kind: str) -> None:
    model, tokens = polygrad.quantize(Model(), kind), Tensor([[1, 2]])
    expected = model(tokens).numpy()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other(tokens).numpy(), expected)
        assert len(get_parameters(other)) == len(get_parameters(model)) == 1
    before = {n: t.dtype for n, t in get_state_dict(model).items()}
    model_to(model, "INTERP", "bfloat16")
    after = get_state_dict(model)
    assert {n for n, t in after.items() if t.dtype != before[n]} == {"layers.0.bias"}
    assert {t.device for t in after.values()} == {"INTERP"}
    got = model(tokens.to("INTERP")).float().numpy()
    assert abs(got - expected).max() < 2e-2 * abs(expected).max()


@pytest.mark.parametrize("kind", ["int8", "int4", "q8_0", "fp8"])
def test_gradients_go_through_to_what_is_below(device: str, kind: str) -> None:
    packed, x = some_packed(kind, 24), numbers(3, 256)
    dense = packed.dense().numpy()
    layer = nn.Linear(256, 24)
    layer.weight = packed
    input_ = Tensor(x).requires_grad_()
    layer(input_).square().sum().backward()
    assert input_.grad is not None and layer.bias is not None and layer.bias.grad is not None
    output = x @ dense.T + layer.bias.numpy()
    np.testing.assert_allclose(input_.grad.numpy(), 2 * output @ dense, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(layer.bias.grad.numpy(), 2 * output.sum(0), rtol=1e-3, atol=1e-2)
    assert all(plane.grad is None for plane in packed.planes.values())


def test_captured_functions_and_steps(device: str) -> None:
    model, tokens = polygrad.quantize(Model(), "q4_0"), Tensor([[1, 2]])
    with Tensor.no_grad():
        captured = TinyJit(lambda t: model(t))
        expected = model(tokens).numpy()
        for _ in range(3):
            np.testing.assert_allclose(captured(tokens).numpy(), expected, rtol=1e-5, atol=1e-6)
    optimizer = nn.optim.SGD(get_parameters(model), lr=0.1)
    labels, planes = Tensor([[3, 4]]), model.layers[0].weight.bits.numpy()

    def loss_of(model: Model, tokens: Tensor, labels: Tensor) -> Tensor:
        return model(tokens).sparse_categorical_crossentropy(labels)

    step = compile_step(loss_of, model, optimizer, tokens, labels)
    losses = [step.run(tokens, labels).item() for _ in range(20)]
    assert losses[-1] < losses[0]
    np.testing.assert_array_equal(model.layers[0].weight.bits.numpy(), planes)


def test_one_kernel_reads_the_bytes_alone() -> None:
    packed, x = some_packed("q4_0", 512, columns=512), Tensor(numbers(1, 512)).realize()
    with Tensor.no_grad():
        captured = TinyJit(lambda x: x.linear(packed.transpose()))
        for _ in range(2):
            captured(x)
    assert len(captured.program.launches) == 1


def test_bad_arguments_are_named_and_nothing_is_packed() -> None:
    model = [nn.Linear(64, 8), nn.Linear(40, 8)]
    with pytest.raises(ArgumentError, match=r"1.weight: q8_0 has blocks of 32 .* 40: .* skip='1'"):
        polygrad.quantize(model, "q8_0")
    with pytest.raises(ArgumentError, match=r"expected one of int8, int4, .*, got 'int3'"):
        polygrad.quantize(model, "int3")
    with pytest.raises(ArgumentError, match=r"q4_k is only read from files: expected one of int8"):
        polygrad.quantize(model, "q4_k")
    assert all(isinstance(layer.weight, Tensor) for layer in model)
    with pytest.raises(ShapeError, match=r"expected a matrix, got shape \(64,\)"):
        nn.PackedWeight.of(Tensor.zeros(64), "int8")
    with pytest.raises(ArgumentError, match=r"multiple of 32 columns, got 40"):
        nn.PackedWeight.of(Tensor.zeros(2, 40), "q4_0")
    with pytest.raises(ShapeError, match=r"expected uint8 of shape \(..., 18\), got uint8 \(2, 17\)"):
        nn.PackedWeight.of_blocks(Tensor.zeros(2, 17, dtype="uint8"), "q4_0")
    with pytest.raises(ArgumentError, match=r"int8 is no kind of ggml"):
        nn.PackedWeight.of_blocks(Tensor.zeros(2, 1, 18, dtype="uint8"), "int8")
    with pytest.raises(ArgumentError, match=r"expected rows by an int, a slice or a Tensor, got tuple"):
        nn.PackedWeight.of(Tensor.zeros(2, 64), "int8")[0, 1]


def test_packing_again_changes_the_activations_that_are_asked_for() -> None:
    """The numbers and the kind stay, weights that are shared stay shared, and what is left out does not
    change."""
    model = polygrad.quantize(Model(), "q8_0", skip="layers.1", activations="float32")
    dense = [model.embedding.weight.dense().numpy(), model.layers[0].weight.dense().numpy()]
    for activations in ("int8", "float32"):
        assert polygrad.quantize(model, "q4_0", skip="layers.1", activations=activations) is model
        assert isinstance(model.layers[1].weight, Tensor)
        assert model.head.weight is model.embedding.weight
        for weight, expected in zip((model.embedding.weight, model.layers[0].weight), dense, strict=True):
            assert (weight.kind, weight.activations) == ("q8_0", activations)
            np.testing.assert_array_equal(weight.dense().numpy(), expected)
    weight = model.layers[0].weight
    polygrad.quantize(model, "q4_0", skip="embedding", activations="int8")
    assert model.embedding.weight.activations == "float32" and weight.activations == "float32"
    assert model.layers[0].weight.activations == model.layers[1].weight.activations == "int8"
    assert model.layers[1].weight.kind == "q4_0"
    weight = model.layers[0].weight
    polygrad.quantize(model, "q8_0", skip="head")
    assert model.layers[0].weight is weight  # no activations were asked for


def test_activations_that_a_packed_weight_does_not_take_are_an_error_and_nothing_changes() -> None:
    model = [nn.Linear(64, 8), nn.Linear(64, 8), nn.Linear(64, 8)]
    polygrad.quantize(model, "q8_0", skip=["1", "2"], activations="float32")
    polygrad.quantize(model, "q5_0", skip="2")
    with pytest.raises(ArgumentError, match=r"1.weight: q5_0 of 64 columns takes no activations of 8 bits"):
        polygrad.quantize(model, "q8_0", activations="int8")
    assert model[0].weight.activations == "float32" and isinstance(model[2].weight, Tensor)
    polygrad.quantize(model, "q8_0", skip="1", activations="int8")
    assert [layer.weight.activations for layer in model] == ["int8", "float32", "int8"]


def test_a_nan_stays_where_it_was() -> None:
    x = numbers(2, 64)
    x[1, 40] = np.nan
    for kind in ("int8", "q4_0", "q8_0"):
        got = nn.PackedWeight.of(Tensor(x), kind).dense().numpy()
        assert np.isfinite(got[0]).all() and np.isnan(got[1, 40])
