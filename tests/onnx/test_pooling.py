"""Pooling whose first window reaches beyond the image, as exporters write a mean of all positions."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx_models import node_model

import polygrad.onnx
from polygrad import Tensor
from polygrad.uop.ops import Ops


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 2, 1, 0]])
def test_a_kernel_larger_than_the_image_within_1e_5(op, pads):
    x = np.random.default_rng(0).normal(size=(1, 3, 7, 5)).astype(np.float32)
    settings = {"kernel_shape": [640, 640], "strides": [640, 640], "ceil_mode": 1, "pads": pads}
    data, (name,) = node_model(op, [x], attributes=settings)
    (wanted,) = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {name: x})
    y = polygrad.onnx.load(data).forward({name: Tensor(x)})["y0"]
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5, atol=1e-6)
    sizes = [int(np.prod(n.shape)) for n in y.uop.toposort() if n.op is not Ops.BUFFER]
    assert max(sizes) < 3 * 640  # nothing has as many positions as the kernel
