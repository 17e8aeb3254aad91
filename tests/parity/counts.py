"""Kernel counts and values of the comparison programs beside those of tinygrad 0.14."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import polygrad
import polygrad.nn
from tests.parity.measure import Measured, Output, measure, measure_tinygrad, optimisation

TOLERANCE = 1e-4  # of the greatest magnitude in an output

_HIDDEN_STATE = "a hidden state is stored, not computed again for every output of a product"

# Where more kernels than tinygrad's are meant, and why.
REASONS = {
    "convolutional_network_backward": "no input requires a gradient, so the forward pass does not know that "
    "max pooling's operand is read again, and does not store it (with `requires_grad`: 18 kernels)",
    "cumsum_backward": "running sums from the end are stored, then turned round; tinygrad sums each anew",
    "heat_steps": "one kernel would compute the first of five stencils at 41 places per element",
    "long_short_term_memory": _HIDDEN_STATE,
    "long_short_term_memory_backward": _HIDDEN_STATE,
}
# The same for the unoptimised form, which is compared with an earlier tinygrad's by the recorded cases.
_SCALARS = "short reductions to a scalar are stored, as tinygrad stored them when the cases were recorded"
_MASKED = "attention is 0 where a row is masked out whole, as torch's; tinygrad's is NaN"
_WITH_A_MASK = ["attention_masked", "language_model_backward", "two_blocks_backward"]
_WITH_A_MASK += ["transformer_block_forward", "transformer_block_backward"]
UNOPTIMISED_REASONS = (
    REASONS
    | {"softmax_over_all": _SCALARS, "power_iteration": _SCALARS}
    | dict.fromkeys(_WITH_A_MASK, _MASKED)
)


@dataclass(frozen=True)
class Row:
    """A program's kernels, ours optimised and not, and tinygrad's; `why` says what is wrong with ours."""

    name: str
    ours: int
    unoptimised: int
    tinygrad: int
    why: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        notes = [*self.why]
        if self.ours > self.tinygrad or self.unoptimised > self.tinygrad:
            notes.append(UNOPTIMISED_REASONS.get(self.name, "no reason is known"))
        kernels = f"{self.name:36} {self.ours:8} {self.unoptimised:11} {self.tinygrad:8}"
        return f"{kernels}  {'; '.join(notes)}".rstrip()


HEADER = f"{'program':36} polygrad unoptimised tinygrad  note"


def rows(names: Iterable[str]) -> Iterator[Row]:
    """Each program's row, as soon as tinygrad has run it."""
    for theirs in measure_tinygrad(names):
        with optimisation(True):
            ours = measure(polygrad, theirs.name)
        with optimisation(False):
            unoptimised = measure(polygrad, theirs.name)
        why = list(differences(ours, theirs, TOLERANCE))
        if ours.kernels > theirs.kernels and theirs.name not in REASONS:
            why.append(f"expected at most {theirs.kernels} kernels, got {ours.kernels}")
        if unoptimised.kernels > theirs.kernels and theirs.name not in UNOPTIMISED_REASONS:
            why.append(f"unoptimised: expected at most {theirs.kernels} kernels, got {unoptimised.kernels}")
        yield Row(theirs.name, ours.kernels, unoptimised.kernels, theirs.kernels, why)


def totals(done: list[Row]) -> str:
    """The table's last line."""
    wrong = sum(bool(r.why) for r in done)
    ours, plain, theirs = (sum(n) for n in zip(*((r.ours, r.unoptimised, r.tinygrad) for r in done)))
    return f"{f'{len(done)} programs, {wrong} wrong':36} {ours:8} {plain:11} {theirs:8}"


def differences(got: Measured, want: Measured, tolerance: float) -> Iterator[str]:
    """What differs: dtypes, shapes, or values by more than `tolerance` of an output's greatest magnitude."""
    for i, (a, b) in enumerate(zip(got.outputs, want.outputs, strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            yield f"output {i}: expected {b.dtype} {b.shape}, got {a.dtype} {a.shape}"
        elif (gap := _gap(a, b)) is not None and not gap[0] <= tolerance * gap[1]:
            yield f"output {i}: expected {gap[2]}, got {gap[3]}"


def _gap(a: Output, b: Output) -> tuple[float, float, float, float] | None:
    """The greatest difference, the greatest finite magnitude wanted, and the two values that differ most."""
    unequal = [(x, y) for x, y in zip(a.values, b.values, strict=True) if x != y and (x == x or y == y)]
    if not unequal:
        return None
    scale = max((abs(y) for y in b.values if abs(y) < float("inf")), default=0.0)
    worst = max(unequal, key=lambda p: abs(p[0] - p[1]) if p[0] - p[1] == p[0] - p[1] else float("inf"))
    return abs(worst[0] - worst[1]), scale, worst[1], worst[0]
