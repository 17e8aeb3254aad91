"""Long running values in parts: how many follow each other, and that parts of parts compute the same."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from polygrad import Tensor  # noqa: E402
from polygrad.codegen.kernels import passes as kernel_passes  # noqa: E402
from polygrad.engine.normalize import normalize  # noqa: E402
from polygrad.engine.programs import clear_caches  # noqa: E402
from polygrad.schedule.split_scan import CORES, GPU, SideBySide  # noqa: E402
from polygrad.uop.args import AxisKind  # noqa: E402
from polygrad.uop.node import UOp  # noqa: E402
from polygrad.uop.ops import Ops  # noqa: E402
from tests.schedules import schedule  # noqa: E402


def longest(x: Tensor, scans: SideBySide) -> int:
    """The most values of a loop that goes in order."""
    plan = schedule(normalize(UOp.sink(x.uop.base)).sink, True, scans=scans)
    loops = [n for call in plan.calls for n in call.ast.toposort() if n.op is Ops.RANGE]
    return max((int(r.src[0].arg) for r in loops if r.arg.kind is AxisKind.SCAN), default=0)


def memory(*shape: int) -> Tensor:
    return Tensor.zeros(*shape, device="INTERP").contiguous().realize()


@pytest.mark.parametrize(
    ("make", "of_cores", "of_a_gpu"),
    [
        (lambda: memory(1 << 20).cumsum(), 1 << 14, 256),
        (lambda: memory(64, 4096).cumsum(1), 4096, 128),
        (lambda: memory(4096, 8).cummax(0)[0], 1024, 128),
        (lambda: memory(4096, 8).cast("int32").cumprod(0), 1024, 128),
        (lambda: memory(4096, 8).cumprod(0), 4096, 4096),
        (lambda: memory(1 << 15).logcumsumexp(), 1 << 15, 1 << 15),
        (lambda: memory(5000, 500).cumsum(1), 500, 500),
        (lambda: memory(200).cumsum(), 200, 200),
    ],
)
def test_how_many_values_follow_each_other(make, of_cores, of_a_gpu):
    assert longest(make(), CORES) == of_cores
    assert longest(make(), GPU) == of_a_gpu


RUNNING = {
    "sums": (lambda x: x.cumsum(1), lambda t: t.cumsum(1)),
    "sums down": (lambda x: x.cumsum(0), lambda t: t.cumsum(0)),
    "products": (lambda x: x.cumprod(1), lambda t: t.cumprod(1)),
    "maxima": (lambda x: x.cummax(1)[0], lambda t: t.cummax(1)[0]),
    "logarithms of sums": (lambda x: x.logcumsumexp(1), lambda t: t.logcumsumexp(1)),
}


@pytest.mark.parametrize("which", RUNNING)
@pytest.mark.parametrize("wanted", [SideBySide(2, 8), SideBySide(64, 5), SideBySide(1000, 2)])
def test_values_and_gradients_are_torchs(which, wanted, monkeypatch):
    monkeypatch.setattr(kernel_passes, "CORES", wanted)
    clear_caches()
    values = np.random.default_rng(2).uniform(0.8, 1.2, (3, 113)).astype(np.float32)
    own, theirs = RUNNING[which]
    x, t = Tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    out, expected = own(x), theirs(t)
    np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), rtol=2e-5)
    (out * out).sum().backward()
    (expected * expected).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=2e-4)
    clear_caches()
