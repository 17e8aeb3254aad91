"""Resize: by whole factors, which needs no index, and by others."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx_models import FLOAT, model

import polygrad.onnx
from polygrad import Tensor
from polygrad.uop.ops import Ops

COORDINATES = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]
FACTORS = [(2, 3), (1, 4), (0.5, 0.25), (1 / 3, 2), (1.5, 0.75), (0.25, 1)]


def resize(factors, size, mode, coordinates, **attributes):
    """An image, what onnxruntime makes of it, and the Tensor that we do."""
    x = np.random.default_rng(sum(size)).normal(size=(2, 3, *size)).astype(np.float32)
    scales = numpy_helper.from_array(np.float32([1, 1, *factors]), "scales")
    attributes |= {"mode": mode, "coordinate_transformation_mode": coordinates}
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], **attributes)
    data = model([node], [helper.make_tensor_value_info("x", FLOAT, x.shape)], ["y"], [scales])
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return x, session.run(None, {"x": x})[0], polygrad.onnx.load(data).forward({"x": Tensor(x)})["y"]


def reads_an_index(y):
    return any(n.dtype.is_int and n.op in (Ops.BUFFER, Ops.ARANGE) for n in y.uop.toposort())


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_the_nearest_elements_are_onnxruntimes(factors, coordinates, rounding):
    _, wanted, y = resize(factors, (12, 8), "nearest", coordinates, nearest_mode=rounding)
    np.testing.assert_array_equal(y.numpy(), wanted)


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("size", [(12, 8), (1, 4)])
def test_linear_within_3e_6_of_onnxruntimes(factors, coordinates, size):
    if any(round(n * f, 6) < 1 for n, f in zip(size, factors, strict=True)):
        pytest.skip("nothing would be left")
    _, wanted, y = resize(factors, size, "linear", coordinates)
    np.testing.assert_allclose(y.numpy(), wanted, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_whole_factors_need_no_index(mode):
    assert not reads_an_index(resize((2, 3), (4, 5), mode, "half_pixel")[2])
    assert reads_an_index(resize((1.5, 1), (4, 5), mode, "half_pixel")[2])


def test_steps_need_no_index():
    assert not reads_an_index(resize((0.5, 0.25), (12, 8), "nearest", "asymmetric", nearest_mode="floor")[2])


def test_what_is_left_of_an_image_is_no_view_of_it():
    """A write to the result does not change the model's input."""
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], **attributes)
    scales = numpy_helper.from_array(np.float32([1, 0.5]), "scales")
    data = model([node], [helper.make_tensor_value_info("x", FLOAT, [1, 4])], ["y"], [scales])
    x = Tensor([[1.0, 2.0, 3.0, 4.0]]).realize()
    y = polygrad.onnx.load(data).forward({"x": x})["y"]
    y += 1
    assert (y.tolist(), x.tolist()) == ([[2, 4]], [[1, 2, 3, 4]])
