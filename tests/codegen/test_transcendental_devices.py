"""exp2, log2 and sin as devices compute them: within 2 ulp, special values included."""

from __future__ import annotations

import numpy as np
import pytest
from codegen.test_transcendental import FLOATS, HAS_WIDER, OPS, REASON, assert_within, random_bits, specials

from polygrad import Tensor
from polygrad.dtype import DType, dtypes


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OPS)
def test_within_2_ulp_on_every_device(device: str, name: str, dtype: DType) -> None:
    if dtype is dtypes.float64 and not HAS_WIDER:
        pytest.skip(REASON)
    x = np.concatenate([specials(dtype), random_bits(dtype, 50_000)])
    if device == "INTERP":
        x = x[:: len(x) // 400]
    out = getattr(Tensor(x, device=device), name)().numpy()
    assert out.dtype == x.dtype
    assert_within(2, name, x, out)
