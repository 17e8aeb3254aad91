"""Ops of com.microsoft against onnxruntime, within 1e-4 (of 1 for results in integers)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx_models import node_model

import polygrad.onnx
from polygrad import Tensor
from polygrad.errors import OnnxError

ort = pytest.importorskip("onnxruntime")
DOMAIN = "com.microsoft"
RNG = np.random.default_rng(0)


def f32(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> Any:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def i8(*shape: int) -> Any:
    return RNG.integers(-127, 128, shape, dtype=np.int8)


def positive(*shape: int) -> Any:
    return RNG.uniform(0.01, 0.1, shape).astype(np.float32)


def number(x: float, dtype: Any = np.float32) -> Any:
    return np.array(x, dtype)


@dataclass
class Case:
    op: str
    inputs: list[Any]
    outputs: int = 1
    attributes: dict[str, Any] = field(default_factory=dict)
    compared: tuple[int, ...] = (0,)
    name: str = ""


def quantized_pair(*shape: int) -> list[Any]:
    return [u8(*shape), number(0.02), number(120, np.uint8)]


OUT = [number(0.05), number(100, np.uint8)]
HALF = {"hidden": 16, "heads": 2, "size": 8}


def caches(positions: int = 16, half: int = 4) -> list[Any]:
    angle = np.arange(positions)[:, None] / 10.0 ** np.arange(half)[None]
    return [np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)]


CASES = [
    Case("Gelu", [f32(3, 8)]),
    Case("FastGelu", [f32(3, 8), f32(8)]),
    Case("FastGelu", [f32(3, 8)], name="no bias"),
    Case("BiasGelu", [f32(3, 8), f32(8)]),
    Case("QuickGelu", [f32(3, 8)], attributes={"alpha": 1.5}),
    Case("Trilu", [f32(4, 4), np.array(1, np.int64)], attributes={"upper": 0}),
    Case("FusedMatMul", [f32(2, 4, 3), f32(2, 5, 4)], attributes={"transA": 1, "transB": 1, "alpha": 0.5}),
    Case("FusedMatMul", [f32(4, 2, 3), f32(2, 3, 5)], attributes={"transBatchA": 1}, name="batch"),
    Case("FusedGemm", [f32(3, 4), f32(4, 5), f32(5)], attributes={"activation": "Relu", "alpha": 0.5}),
    Case("FusedConv", [f32(1, 2, 5, 5), f32(3, 2, 3, 3), f32(3)], attributes={"activation": "Relu"}),
    Case(
        "FusedConv",
        [f32(1, 2, 5, 5), f32(3, 2, 3, 3), f32(3)],
        attributes={"activation": "LeakyRelu", "activation_params": [0.2], "pads": [1, 1, 1, 1]},
        name="leaky",
    ),
    Case("Inverse", [f32(2, 3, 3)]),
    Case(
        "SkipLayerNormalization",
        [f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8), f32(8)],
        outputs=4,
        compared=(0, 3),
    ),
    Case(
        "SkipSimplifiedLayerNormalization",
        [f32(2, 3, 8), f32(2, 3, 8), f32(8)],
        outputs=4,
        compared=(0, 3),
    ),
    Case(
        "EmbedLayerNormalization",
        [
            RNG.integers(0, 9, (2, 4), dtype=np.int32),
            RNG.integers(0, 2, (2, 4), dtype=np.int32),
            f32(9, 8),
            f32(6, 8),
            f32(2, 8),
            f32(8),
            f32(8),
            np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32),
        ],
        outputs=2,
        compared=(0, 1),
    ),
    # attention
    Case("Attention", [f32(2, 5, 12), f32(12, 48), f32(48)], attributes={"num_heads": 2}),
    Case(
        "Attention",
        [f32(2, 5, 12), f32(12, 48), f32(48), np.array([3, 5], np.int32)],
        attributes={"num_heads": 2},
        name="lengths",
    ),
    Case(
        "Attention",
        [f32(2, 5, 12), f32(12, 48), f32(48), np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)],
        attributes={"num_heads": 2},
        name="mask",
    ),
    Case(
        "Attention",
        [f32(2, 5, 12), f32(12, 48), f32(48), None, None, f32(1, 2, 5, 5)],
        attributes={"num_heads": 2, "unidirectional": 1},
        name="causal with bias",
    ),
    Case(
        "Attention",
        [f32(2, 3, 12), f32(12, 48), f32(48), None, f32(2, 2, 2, 4, 8)],
        outputs=2,
        attributes={"num_heads": 2, "unidirectional": 1},
        compared=(0, 1),
        name="past",
    ),
    Case(
        "QAttention",
        [
            u8(2, 5, 12),
            u8(12, 48),
            f32(48),
            number(0.01),
            number(0.02),
            None,
            number(128, np.uint8),
            number(120, np.uint8),
        ],
        attributes={"num_heads": 2},
    ),
    Case("MultiHeadAttention", [f32(2, 5, 16), f32(2, 7, 16), f32(2, 7, 16)], attributes={"num_heads": 2}),
    Case(
        "MultiHeadAttention",
        [f32(2, 5, 16), f32(2, 7, 16), f32(2, 7, 16), f32(48), None, f32(2, 2, 5, 7)],
        attributes={"num_heads": 2},
        name="bias",
    ),
    Case(
        "MultiHeadAttention",
        [f32(2, 3, 16), f32(2, 3, 16), f32(2, 3, 16), None, None, None, f32(2, 2, 4, 8), f32(2, 2, 4, 8)],
        outputs=3,
        attributes={"num_heads": 2},
        compared=(0, 1, 2),
        name="past",
    ),
    Case(
        "RotaryEmbedding",
        [f32(2, 5, 16), np.array([2], np.int64), *caches()],
        name="one position",
    ),
    Case(
        "RotaryEmbedding",
        [f32(2, 2, 5, 8), np.array([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]], np.int64), *caches()],
        attributes={"interleaved": 1},
        name="4d interleaved",
    ),
    Case(
        "GroupQueryAttention",
        [
            f32(2, 5, 32), f32(2, 5, 16), f32(2, 5, 16), f32(2, 2, 0, 8), f32(2, 2, 0, 8),
            np.array([4, 4], np.int32), number(5, np.int32),
        ],
        outputs=3,
        attributes={"num_heads": 4, "kv_num_heads": 2},
        compared=(0, 1, 2),
        name="prompt",
    ),
    Case(
        "GroupQueryAttention",
        [
            f32(2, 1, 64), f32(2, 1, 32), f32(2, 1, 32), f32(2, 2, 4, 16), f32(2, 2, 4, 16),
            np.array([4, 4], np.int32), number(5, np.int32), *caches(half=8),
        ],
        outputs=3,
        attributes={"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1},
        compared=(0, 1, 2),
        name="rotary step",
    ),
    Case(
        "GroupQueryAttention",
        [
            f32(1, 6, 128), None, None, f32(1, 2, 0, 16), f32(1, 2, 0, 16), np.array([5], np.int32),
            number(6, np.int32), *caches(half=8),
        ],
        outputs=3,
        attributes={
            "num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "local_window_size": 3, "softcap": 5.0,
        },
        compared=(0, 1, 2),
        name="packed window",
    ),
    # quantised
    *[Case(f"QLinear{name}", quantized_pair(3, 4) + quantized_pair(4) + OUT) for name in ("Add", "Mul")],
    Case("QLinearSigmoid", [*quantized_pair(3, 4), number(1 / 256), number(0, np.uint8)]),
    Case("QLinearLeakyRelu", quantized_pair(3, 4) + OUT, attributes={"alpha": 0.2}),
    Case("QLinearConcat", [*OUT, *quantized_pair(3, 4), *quantized_pair(2, 4)], attributes={"axis": 0}),
    Case("QLinearGlobalAveragePool", quantized_pair(1, 3, 4, 4) + OUT),
    Case("QLinearAveragePool", quantized_pair(1, 3, 4, 4) + OUT, attributes={"kernel_shape": [2, 2]}),
    Case(
        "QLinearSoftmax",
        [*quantized_pair(3, 4), number(1 / 256), number(0, np.uint8)],
        attributes={"axis": -1, "opset": 13},
    ),
    Case(
        "QLinearWhere",
        [RNG.integers(0, 2, (3, 4)).astype(bool), *quantized_pair(3, 4), *quantized_pair(3, 4), *OUT],
    ),
    Case(
        "QGemm",
        [
            u8(3, 4), number(0.02), number(120, np.uint8), i8(4, 5), positive(5), np.zeros(5, np.int8),
            RNG.integers(-50, 50, 5, dtype=np.int32), *OUT,
        ],
    ),
    Case("DynamicQuantizeMatMul", [f32(3, 4), u8(4, 5), number(0.02), number(128, np.uint8), f32(5)]),
    Case(
        "MatMulIntegerToFloat",
        [u8(3, 4), u8(4, 5), number(0.02), positive(5), number(120, np.uint8), u8(5), f32(5)],
    ),
    *[
        Case(
            "MatMulNBits",
            [f32(2, 64), u8(5, 2, 32 * bits // 8), positive(5 * 2), zeros],
            attributes={"K": 64, "N": 5, "bits": bits, "block_size": 32},
            name=f"{bits} bits{'' if zeros is None else ' with zero points'}",
        )
        for bits in (4, 8)
        for zeros in (None, u8(5 * (1 if bits == 4 else 2)))
    ],
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.op} {c.name}".strip())
def test_op_within_1e_4_of_onnxruntime(case):
    data, names = node_model(case.op, case.inputs, case.outputs, case.attributes, DOMAIN)
    given = {n: x for n, x in zip(names, case.inputs) if x is not None}
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    wanted = session.run([f"y{i}" for i in case.compared], given)
    found = polygrad.onnx.load(data).forward({n: Tensor(x) for n, x in given.items()})
    for i, want in zip(case.compared, wanted):
        got = found[f"y{i}"].numpy()
        assert got.shape == want.shape and got.dtype == want.dtype
        tolerance = 1.0 if want.dtype.kind in "iu" else 1e-4
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-4, atol=tolerance)


def test_what_an_op_does_not_have_is_said():
    inputs = [f32(1, 2, 4), f32(4, 12), f32(12)]
    data, names = node_model("Attention", inputs, 1, {"num_heads": 2, "do_rotary": 1}, DOMAIN)
    with pytest.raises(OnnxError, match=r"\(com.microsoft.Attention\): Attention with do_rotary"):
        polygrad.onnx.load(data).forward({n: Tensor(x) for n, x in zip(names, inputs)})
