"""`interpolate` gives a value: a write to it, or to the image, is not seen in the other, as in torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polygrad import Tensor


@pytest.mark.parametrize("writes_result", [True, False])
@pytest.mark.parametrize("size", [(4, 6), (2, 3), (8, 12), (4, 3), (8, 6), (5, 7)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear"])
def test_after_a_write_image_and_result_are_torchs(
    mode: str, size: tuple[int, int], writes_result: bool
) -> None:
    data = np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6)
    ours, theirs = Tensor(data).realize(), torch.from_numpy(data.copy())
    result, wanted = ours.interpolate(size, mode), torch.nn.functional.interpolate(theirs, size, mode=mode)
    if writes_result:
        result += 1
        wanted += 1
    else:
        ours += 1
        theirs += 1
    np.testing.assert_allclose(result.numpy(), wanted.numpy(), atol=1e-5)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
