"""Attention to a number of keys that is only known when it runs: numpy's numbers, and how scores lie."""

from __future__ import annotations

import numpy as np
import pytest

from polygrad import Tensor, Variable
from polygrad.models.attention import _ROWS_OF_VECTORS, _goes_along_queries, attend

RNG = np.random.default_rng(5)
BATCH, HEADS, SIZE, CAPACITY, KEYS = 2, 6, 8, 40, 29


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def reference(q, k, v, mask, bias, softcap):
    repeats = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x.astype(np.float64), repeats, 1) for x in (k, v))
    scores = q.astype(np.float64) @ k.transpose(0, 1, 3, 2) / np.sqrt(SIZE)
    if softcap is not None:
        scores = np.tanh(scores / softcap) * softcap
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -1e30)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("queries", [1, 5, 32])
@pytest.mark.parametrize("groups", [1, 3, 6])
@pytest.mark.parametrize("softcap", [None, 2.0])
def test_numpy_s_within_1e_5(device: str, queries: int, groups: int, softcap: float | None) -> None:
    q, k, v = numbers(BATCH, HEADS, queries, SIZE), *(numbers(BATCH, groups, CAPACITY, SIZE) for _ in "kv")
    bias = numbers(1, HEADS, queries, CAPACITY)
    mask = RNG.random((BATCH, 1, queries, CAPACITY)) < 0.7
    mask[..., 0] = True
    keys = Variable("keys", 1, CAPACITY).bind(KEYS)
    own = [Tensor(x, device=device) for x in (q, k, v, mask, bias)]
    with Tensor.no_grad():
        got = attend(
            own[0],
            own[1][:, :, :keys],
            own[2][:, :, :keys],
            own[3][..., :keys],
            None,
            softcap,
            own[4][..., :keys],
        ).numpy()
    want = reference(q, k[:, :, :KEYS], v[:, :, :KEYS], mask[..., :KEYS], bias[..., :KEYS], softcap)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_scores_lie_along_queries_where_keys_vary_and_rows_are_many() -> None:
    varying = Tensor.zeros(CAPACITY)[: Variable("keys", 1, CAPACITY).bind(KEYS)].shape[0]
    assert _goes_along_queries(_ROWS_OF_VECTORS, varying)
    assert not _goes_along_queries(_ROWS_OF_VECTORS - 1, varying)
    assert not _goes_along_queries(512, 512)
