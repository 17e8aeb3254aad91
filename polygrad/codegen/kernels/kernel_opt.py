"""KernelOpts: decisions about the kernels of a graph before each is lowered, as data.

    FUSE k2 k3 r1 8           kernel 2, a reduction, computed in each row of kernel 3, here 8 rounds of r1
    MULTI_OUTPUT k2 k3 r1 8   the same, and kernel 3 stores its results, as other kernels read them, too
    COMPUTE_AT k2 k3 r1 16    kernel 2 computed in kernel 3, for 16 rounds of its loop r1 at a time
    KEYED_SCAN k3             a sum over earlier elements (with the same key) as running values in order
    INDEX_PUT k3              a loop over writers instead of all elements (possibly after a copy of these)
    SCATTER k3                a sum over one-hots as additions at positions
    PARTITION k2 r1 8 16      a loop over output elements as kernels up to 8, up to 16, and from there
    COMPUTE_ROOT k4 0         sum number 0 of a kernel stored by a kernel of its own
    SPLIT_REDUCE k4 r2 8      a sum over r2 as 8 parts, which a kernel stores, and the sum of the parts
    INTERCHANGE k4 r2 r1 8    a sum over r2 that goes through the columns r1 for 8 terms at a time
    POLYPHASE k3 1            a sum that skips terms as sums that skip none; 1: a kernel for each of them
    RELAYOUT k4 1 0 2 1       operand 1 of a product copied, with its axes in the order 0 2 1
    DOT_PRODUCT k4 r1         a product of narrow numbers as DOTs of words, with r1 in the lanes
    SEPARATE k4 r5            a reduction over windows along r5 of what is reduced along their other axes
    SPLIT_RANGE k4 r2 16 32   a loop as loops over blocks of 32, over 16 of these, and in one
    NARROW_STORAGE k3         the output of a kernel kept in 16 bits

A kernel's number is its place in the list when the KernelOpt is carried out; the kernels that replace it take
its place. `DEBUG=3` prints KernelOpts, KERNEL_OPTS gives them instead of the heuristics, and BEAM searches
for others.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from polygrad.codegen.target import Target
from polygrad.errors import ArgumentError
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.node import UOp
from polygrad.uop.parser import axis_id, is_digits
from polygrad.uop.printer import axis_name

AxisId = tuple[int, ...]
Calls = list[KernelCall]


class Kind(StrEnum):
    """The kinds of KernelOpts: the module's docstring has an example of each."""

    FUSE = "FUSE"
    MULTI_OUTPUT = "MULTI_OUTPUT"
    COMPUTE_AT = "COMPUTE_AT"
    KEYED_SCAN = "KEYED_SCAN"
    INDEX_PUT = "INDEX_PUT"
    SCATTER = "SCATTER"
    PARTITION = "PARTITION"
    COMPUTE_ROOT = "COMPUTE_ROOT"
    SPLIT_REDUCE = "SPLIT_REDUCE"
    INTERCHANGE = "INTERCHANGE"
    POLYPHASE = "POLYPHASE"
    RELAYOUT = "RELAYOUT"
    DOT_PRODUCT = "DOT_PRODUCT"
    SEPARATE = "SEPARATE"
    SPLIT_RANGE = "SPLIT_RANGE"
    NARROW_STORAGE = "NARROW_STORAGE"


class KernelOpt(NamedTuple):
    """One decision: about kernels, some of their axes, and numbers."""

    kind: Kind
    kernels: tuple[int, ...] = ()
    axes: tuple[AxisId, ...] = ()
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        kernels = [f"k{k}" for k in self.kernels]
        return " ".join([self.kind.value, *kernels, *map(axis_name, self.axes), *map(str, self.numbers)])


KernelOpts = tuple[KernelOpt, ...]


@dataclass(frozen=True, slots=True)
class KernelContext:
    """The context of kernels. `results`: the nodes whose buffers are read when all kernels have run; `apart`:
    those whose kernels move into no other. `searching`: decisions that do not pay are proposed, too. `made`:
    the results of decisions, for equal decisions about equal kernels."""

    target: Target
    optimized: bool
    results: frozenset[UOp]
    apart: frozenset[UOp] = frozenset()
    searching: bool = False
    made: dict[tuple[UOp, int, KernelOpt], tuple[UOp, ...]] = field(default_factory=dict, compare=False)

    def least(self, size: int) -> int:
        """The least size of the kernels that a pass considers: `size`, from which it pays, or 1 in a
        search."""
        return 1 if self.searching else size


class Proposal(NamedTuple):
    """A KernelOpt that applies, and whether it pays; one that does not pay is for searches."""

    opt: KernelOpt
    pays: bool = True


Decisions = Generator[Proposal, Calls, Calls]  # sent the kernels after each proposal; returns the last
Decide = Callable[[Calls, KernelContext], Decisions]
Propose = Callable[[KernelCall, KernelContext], Iterable[Proposal]]


def each(propose: Propose, repeat: bool = False) -> Decide:
    """Proposals for each kernel; equal kernels are asked once. `repeat`: also for the kernels that replace
    it."""
    return lambda calls, context: _propose_for_each(calls, context, propose, repeat)


def _propose_for_each(calls: Calls, context: KernelContext, propose: Propose, repeat: bool) -> Decisions:
    """Each proposal of a kernel is about the last of the kernels that replaced it in earlier proposals."""
    proposals: dict[tuple[UOp, int], tuple[Proposal, ...]] = {}
    k = 0
    while k < len(calls):
        key = calls[k].ast, len(calls[k].args)
        if key not in proposals:
            proposals[key] = tuple(propose(calls[k], context))
        for proposal in proposals[key]:
            before = calls
            calls = yield proposal._replace(opt=proposal.opt._replace(kernels=(k,)))
            if repeat and calls is not before:
                break
            k += len(calls) - len(before)
        else:
            k += 1
    return calls


# --- as text


def render_kernel_opts(opts: Iterable[KernelOpt]) -> str:
    """KernelOpts as `parse_kernel_opts` reads them: `COMPUTE_AT k2 k3 r1 16, POLYPHASE k4`; `none`."""
    return ", ".join(map(str, opts)) or "none"


def parse_kernel_opts(text: str) -> KernelOpts:
    """The KernelOpts of a text, separated by commas; `none` stands for no KernelOpts. Raises ArgumentError
    that names the word that is not understood.

    >>> parse_kernel_opts("SPLIT_REDUCE k4 r2 8")[0].numbers
    (8,)
    """
    if text.strip() == "none":
        return ()
    return tuple([_parse(part.split()) for part in text.split(",") if part.strip()])


def _parse(words: list[str]) -> KernelOpt:
    text = " ".join(words)
    if words[0] not in Kind.__members__:
        kinds = ", ".join(Kind.__members__)
        raise ArgumentError(f"kernel opt {text!r}: expected one of {kinds}, got {words[0]!r}")
    kernels: list[int] = []
    axes: list[AxisId] = []
    numbers: list[int] = []
    for word in words[1:]:
        axis = axis_id(word[1:]) if word[0] == "r" else ()
        if is_digits(word):
            numbers.append(int(word))
        elif axis and not numbers:
            axes.append(axis)
        elif word[0] == "k" and is_digits(word[1:]) and not axes and not numbers:
            kernels.append(int(word[1:]))
        else:
            raise ArgumentError(
                f"kernel opt {text!r}: expected kernels as k2, axes as r1.0, then numbers, got {word!r}"
            )
    return KernelOpt(Kind[words[0]], tuple(kernels), tuple(axes), tuple(numbers))
