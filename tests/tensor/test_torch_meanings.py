"""Values and gradients that are torch's where they were not: medians, masks without a True, zeros, ties."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from polygrad import Tensor
from polygrad.errors import GradientError


def test_median_of_an_even_count_is_an_element_and_its_place() -> None:
    values = np.array([[4, 1, 3, 2], [8, 5, 7, 6]], np.int32)
    medians, places = Tensor(values).median(1)
    want = torch.tensor(values).median(1)
    assert medians.tolist() == want.values.tolist() == [2, 6]
    assert places.tolist() == want.indices.tolist()
    assert Tensor(values).median().item() == torch.tensor(values).median().item() == 4
    assert str(medians.dtype) == "int32"


def test_medians_and_their_places_keep_the_axis_where_that_is_asked_for() -> None:
    values = np.array([[4, 1, 3, 2], [8, 5, 7, 6]], np.int32)
    for axis in (0, 1):
        ours = Tensor(values).median(axis, keepdim=True)
        want = torch.tensor(values).median(axis, keepdim=True)
        assert [t.tolist() for t in ours] == [want.values.tolist(), want.indices.tolist()]


@pytest.mark.parametrize("mask", [[[True, False], [False, False]], [[0.0, 1.0], [-np.inf, -np.inf]]])
def test_attention_to_nothing_is_0_and_so_is_its_gradient(mask: list[list[float]]) -> None:
    q, k, v = (np.random.default_rng(i).normal(size=(2, 3)).astype(np.float32) for i in range(3))
    ours = [Tensor(a, requires_grad=True) for a in (q, k, v)]
    theirs = [torch.tensor(a, requires_grad=True) for a in (q, k, v)]
    out = ours[0].scaled_dot_product_attention(ours[1], ours[2], Tensor(mask))
    want = F.scaled_dot_product_attention(*theirs, torch.tensor(mask))
    np.testing.assert_allclose(out.numpy(), want.detach().numpy(), atol=1e-6)
    assert out[1].tolist() == [0.0, 0.0, 0.0]
    (out * out).sum().backward()
    (want * want).sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        assert a.grad is not None and b.grad is not None
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), atol=1e-5)


def test_ctc_loss_of_targets_one_after_the_other_is_torchs() -> None:
    logs = np.random.default_rng(0).normal(size=(5, 3, 4)).astype(np.float32)
    targets, ins, outs = np.array([1, 2, 3, 3]), [5, 4, 5], [1, 0, 3]
    got = Tensor(logs).log_softmax(-1).ctc_loss(Tensor(targets), ins, outs, reduction="none")
    theirs = torch.tensor(logs).log_softmax(-1)
    want = F.ctc_loss(theirs, torch.tensor(targets), ins, outs, reduction="none")
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5)


def test_ctc_loss_of_no_targets_is_empty() -> None:
    logs, none = Tensor.zeros(5, 0, 4), Tensor.zeros(0, dtype="int32")
    for targets in (none, none.reshape(0, 2)):
        assert logs.ctc_loss(targets, none, none, reduction="none").tolist() == []
        assert logs.ctc_loss(targets, none, none, reduction="sum").item() == 0


def test_the_gradient_of_a_wide_qr_is_torchs() -> None:
    a = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    ours, theirs = Tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    ours.qr()[1].square().sum().backward()
    torch.linalg.qr(theirs)[1].square().sum().backward()
    assert ours.grad is not None and theirs.grad is not None
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=1e-4)


def test_what_has_no_gradient_says_so() -> None:
    tall = Tensor(np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32), requires_grad=True)
    with pytest.raises(GradientError, match="reduced"):
        tall.qr("complete")[0].sum().gradient(tall)
    with pytest.raises(GradientError, match="full_matrices"):
        tall.svd()[0].sum().gradient(tall)
    assert np.isfinite(tall.svd()[1].sum().gradient(tall)[0].numpy()).all()
