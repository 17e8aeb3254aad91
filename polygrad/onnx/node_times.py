"""Measures the time of each node of a model, with nodes computed one by one.

A forward pass fuses nodes into kernels, so single nodes have no times there. Here each node's outputs are
computed before the next node, and the launches in between belong to the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from polygrad.engine.profile import profile
from polygrad.engine.report import table_of, time_of
from polygrad.engine.stats import stats
from polygrad.onnx.graph_program import Step
from polygrad.onnx.values import Narrow, Value, describe
from polygrad.tensor.tensor import Tensor

Observe = Callable[[Step, list[Value]], None]
_HEAD = ("op", "nodes", "launches", "time", "share")


@dataclass(frozen=True, slots=True)
class NodeTime:
    """A node: its op by 'domain.Op', the mean seconds that its launches take, and its outputs in words."""

    name: str
    op: str
    seconds: float
    launches: int
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class NodeTimes:
    """What `Instance.profile` gives; printed, a table of ops, the one that takes longest first.

    `nodes`: those of the main graph, in order; what runs inside of a node is counted as the node's. `rounds`:
    how often each was timed. `fused_seconds`, `fused_launches`: of the forward pass as it usually runs.
    """

    nodes: tuple[NodeTime, ...]
    rounds: int
    fused_seconds: float
    fused_launches: int

    def __str__(self) -> str:
        total = sum(node.seconds for node in self.nodes)
        ops: dict[str, list[NodeTime]] = {}
        for node in self.nodes:
            ops.setdefault(node.op, []).append(node)
        rows = []
        for op, nodes in sorted(ops.items(), key=lambda item: -sum(node.seconds for node in item[1])):
            spent = sum(node.seconds for node in nodes)
            launches = sum(node.launches for node in nodes)
            share = f"{100 * spent / (total or 1.0):.1f} %"
            rows.append([op, f"{len(nodes)}", f"{launches}", time_of(spent), share])
        head = (
            f"{len(self.nodes)} nodes one by one: {time_of(total)} in {sum(n.launches for n in self.nodes)} "
            f"launches; together: {time_of(self.fused_seconds)} in {self.fused_launches}"
        )
        return f"{head}\n{table_of(_HEAD, rows)}"

    __repr__ = __str__


def node_times(
    forward: Callable[[list[Value], Observe | None], list[Value]], arguments: list[Value], seconds: float
) -> NodeTimes:
    """The times of `forward`, which computes outputs from arguments, and tells of each node's outputs."""
    anew = [_copier(x) for x in arguments]
    steps: list[tuple[Step, int, tuple[str, ...]]] = []

    def one_by_one() -> None:
        steps.clear()
        before = stats.launches

        def observe(step: Step, values: list[Value]) -> None:
            nonlocal before
            _compute(values)
            steps.append((step, stats.launches - before, tuple(describe(x) for x in values)))
            before = stats.launches

        forward([copy() for copy in anew], observe)

    alone = profile(one_by_one, seconds)
    together = profile(lambda: _compute(forward([copy() for copy in anew], None)), seconds)
    launches = iter(alone.launches)
    nodes = tuple(_node_time(*step, launches) for step in steps)
    return NodeTimes(nodes, alone.rounds, sum(x.seconds for x in together.launches), len(together.launches))


def _node_time(step: Step, count: int, outputs: tuple[str, ...], launches: Iterator[Any]) -> NodeTime:
    node = step.node
    seconds = sum(next(launches).seconds for _ in range(count))
    return NodeTime(
        node.name, f"{node.domain}.{node.op}" if node.domain else node.op, seconds, count, outputs
    )


def _copier(value: Value) -> Callable[[], Value]:
    """Makes copies of an argument from the host, without a launch: of the same memory, results are known."""
    if isinstance(value, list):
        copiers = [_copier(x) for x in value]
        return lambda: [copy() for copy in copiers]
    if isinstance(value, Narrow):
        copy_tensor, element = _copier(value.tensor), value.element
        return lambda: Narrow(cast(Tensor, copy_tensor()), element)
    if not isinstance(value, Tensor) or 0 in value.shape:
        return lambda: value
    raw, device, dtype, shape = bytes(value.data().cast("B")), value.device, value.dtype, value.shape
    return lambda: Tensor(raw, device, dtype).reshape(shape)


def _compute(values: list[Value]) -> None:
    """Compute what is lazy among values, in one Program."""
    tensors = list(_tensors(values))
    if tensors:
        tensors[0].realize(*tensors[1:])


def _tensors(values: list[Any]) -> Iterator[Tensor]:
    for x in values:
        if isinstance(x, list):
            yield from _tensors(x)
        elif isinstance(x, (Tensor, Narrow)):
            yield x.tensor if isinstance(x, Narrow) else x
