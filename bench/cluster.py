"""The time of a data-parallel step on N ranks, from bytes, bandwidth, latency and overlap.

Backward goes through the layers from the last to the first; a bucket of gradients is reduced when it is full,
one after the other, while backward goes on; the step ends with both, and the optimizer. All ranks are alike,
and each has a link to a switch without contention. Collectives take what their algorithms take (R. Thakur et
al., "Optimization of Collective Communication Operations in MPICH", 2005):

    ring                 2 (N - 1) latencies                + 2 (N - 1) / N * bytes / bandwidth
    halving and doubling 2 log2(N) latencies, rounded up    + the same

`python -m bench.cluster` prints a table; `python -m bench distributed` compares the model with measured steps
of 1, 2 and 4 ranks. Knows no engine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

MB = 1e6
ALGORITHMS = ("ring", "halving")
_OPTIMIZER_BYTES = 28  # of Adam, a parameter: reads weight, gradient and two moments, writes three


@dataclass(frozen=True)
class Layer:
    """Its parameters and the operations of its forward pass for one sample; backward has twice as many."""

    name: str
    parameters: int
    flops: float


@dataclass(frozen=True)
class Workload:
    """A model and the samples of one rank's batch. `rate`: the operations a second that a rank reaches on it;
    `memory`: bytes a second of its memory."""

    name: str
    layers: Sequence[Layer]
    samples: int
    rate: float
    memory: float

    @property
    def parameters(self) -> int:
        return sum(layer.parameters for layer in self.layers)

    def forward(self, layer: Layer) -> float:
        """Seconds."""
        return layer.flops * self.samples / self.rate

    def optimizer(self, part: float = 1.0) -> float:
        """Seconds, of a part of the parameters."""
        return part * self.parameters * _OPTIMIZER_BYTES / self.memory


@dataclass(frozen=True)
class Link:
    """Bytes a second each way, seconds for each message, and what share of a rank's operations it takes while
    it is busy."""

    name: str
    bandwidth: float
    latency: float
    takes: float = 0.0


@dataclass(frozen=True)
class Plan:
    """`bucket`: bytes of float32 gradients; `edge`: of the first and the last bucket, if that is less.
    `wire`: bytes of a number that is sent. `zero`: ZeRO-1, in which each rank has a part of the optimizer's
    state, so gradients are reduced to parts and weights are gathered from parts. `accumulate`: batches of a
    step, of which the last one communicates. `algorithm`: "ring", "halving", or the better one, "best"."""

    bucket: float = 25 * MB
    edge: float = 1 * MB
    wire: int = 4
    zero: bool = False
    overlap: bool = True
    accumulate: int = 1
    algorithm: str = "best"


@dataclass(frozen=True)
class StepTime:
    """Seconds. `compute`: without communication. `communication`: of all collectives. `exposed`: by how much
    the step is longer than `compute`."""

    seconds: float
    compute: float
    communication: float

    @property
    def exposed(self) -> float:
        return self.seconds - self.compute

    @property
    def efficiency(self) -> float:
        """Of weak scaling: the throughput of a rank as a part of that of one alone."""
        return self.compute / self.seconds


def all_reduce(ranks: int, nbytes: float, link: Link, algorithm: str = "best") -> float:
    """Seconds of the sum of `nbytes` on each rank."""
    if ranks == 1 or not nbytes:
        return 0.0
    moved = 2 * (ranks - 1) / ranks * nbytes / link.bandwidth
    messages = {"ring": 2 * (ranks - 1), "halving": 2 * math.ceil(math.log2(ranks))}
    count = min(messages.values()) if algorithm == "best" else messages[algorithm]
    return count * link.latency + moved


def simulate(work: Workload, link: Link, ranks: int, plan: Plan | None = None) -> StepTime:
    """One step of `ranks` ranks."""
    plan = plan or Plan()
    forward = sum(work.forward(layer) for layer in work.layers)
    compute = 3 * plan.accumulate * forward + work.optimizer()
    now = 3 * (plan.accumulate - 1) * forward + forward
    free = total = waiting = 0.0  # when the link is free; seconds it was busy; bytes of the open bucket
    limit = min(plan.edge, plan.bucket)
    ends = {0, _in_last_bucket(work.layers, limit)} if plan.overlap else {0}
    for i in reversed(range(len(work.layers))):
        now = _later(now, 2 * work.forward(work.layers[i]), free, link.takes)
        waiting += 4 * work.layers[i].parameters
        if i in ends or (waiting >= limit and plan.overlap):
            seconds = all_reduce(ranks, waiting / 4 * plan.wire, link, plan.algorithm)
            seconds /= 2 if plan.zero else 1
            free = max(now, free) + seconds
            total += seconds
            waiting, limit = 0.0, plan.bucket
    end = max(now, free)
    if not plan.zero:
        return StepTime(end + work.optimizer(), compute, total)
    gather = all_reduce(ranks, work.parameters * plan.wire, link, plan.algorithm) / 2
    return StepTime(end + work.optimizer(1 / ranks) + gather, compute, total + gather)


def _in_last_bucket(layers: Sequence[Layer], edge: float) -> int:
    """The number of layers in the last bucket: those at the front that have so many bytes, at least one with
    parameters; 0 if all have no more, which are one bucket then."""
    sizes = list(itertools.accumulate(4.0 * layer.parameters for layer in layers))
    if sizes[-1] <= edge:
        return 0
    return max(sum(size <= edge for size in sizes), next(i for i, size in enumerate(sizes, 1) if size))


def _later(now: float, seconds: float, busy_until: float, takes: float) -> float:
    """When `seconds` of work end that begin now, while the link takes a part of the rank until a time."""
    slow = max(busy_until - now, 0.0)
    done = slow * (1 - takes)
    return now + seconds / (1 - takes) if seconds < done else now + slow + seconds - done


# --- models


def gpt2(width: int = 768, blocks: int = 12, tokens: int = 1024, words: int = 50257) -> list[Layer]:
    """GPT-2 124M; a sample is a text of `tokens`. Its embedding is its head, too, so the largest gradient is
    the last one that is ready."""

    def product(name: str, rows: int, columns: int) -> Layer:
        return Layer(name, rows * columns + columns, 2.0 * tokens * rows * columns)

    out = [Layer("embedding", words * width + 1024 * width, 0.0)]
    for i in range(blocks):
        out += [
            product(f"{i}.qkv", width, 3 * width),
            Layer(f"{i}.attention", 0, 4.0 * tokens * tokens * width),
            product(f"{i}.out", width, width),
            product(f"{i}.up", width, 4 * width),
            product(f"{i}.down", 4 * width, width),
            Layer(f"{i}.norms", 4 * width, 0.0),
        ]
    return [*out, Layer("norm", 2 * width, 0.0), Layer("head", 0, 2.0 * tokens * width * words)]


def resnet50(size: int = 224) -> list[Layer]:
    """ResNet-50 (version 1.5); a sample is an image."""
    out: list[Layer] = []

    def conv(name: str, channels: int, filters: int, kernel: int, side: int) -> None:
        weights = channels * filters * kernel * kernel
        out.append(Layer(name, weights + 2 * filters, 2.0 * weights * side * side))

    side, channels = size // 2, 64
    conv("stem", 3, channels, 7, side)
    side //= 2
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            name, before = f"{stage}.{block}", side
            side = side // 2 if stage and not block else side
            conv(f"{name}.a", channels, width, 1, before)
            conv(f"{name}.b", width, width, 3, side)
            conv(f"{name}.c", width, 4 * width, 1, side)
            if not block:
                conv(f"{name}.down", channels, 4 * width, 1, side)
            channels = 4 * width
    return [*out, Layer("head", channels * 1000 + 1000, 2.0 * channels * 1000)]


# A GPU reaches 100 TFLOP/s on products and 40 on convolutions, with memory of 2 TB/s; a processor of 32 cores
# 2 TFLOP/s and 1, with memory of 0.2 TB/s.
WORKLOADS = (
    Workload("GPT-2 124M, 8 texts of 1,024, GPU", gpt2(), 8, 100e12, 2e12),
    Workload("ResNet-50, 64 images, GPU", resnet50(), 64, 40e12, 2e12),
    Workload("GPT-2 124M, 8 texts of 1,024, processor", gpt2(), 8, 2e12, 0.2e12),
    Workload("ResNet-50, 64 images, processor", resnet50(), 64, 1e12, 0.2e12),
)
LINKS = (
    Link("1 Gbit/s", 0.94e9 / 8, 30e-6),  # Ethernet and TCP: 6 % are headers
    Link("10 Gbit/s", 9.4e9 / 8, 20e-6),
    Link("100 Gbit/s", 94e9 / 8, 5e-6),
)
RANKS = (2, 8, 64, 1024)
BUCKETS = tuple(n * MB for n in (1, 2.5, 5, 10, 25, 50, 100, 1000))
_MOST = 1 << 12  # batches of a step


def best_bucket(work: Workload, link: Link, ranks: int, plan: Plan | None = None) -> float:
    """The bytes of buckets with which a step is shortest."""
    plan = plan or Plan()
    return min(BUCKETS, key=lambda size: simulate(work, link, ranks, replace(plan, bucket=size)).seconds)


def accumulation(work: Workload, link: Link, ranks: int, efficiency: float) -> int | None:
    """The least number of batches of a step with which weak scaling is so efficient; None beyond 4,096."""
    for count in range(1, _MOST + 1):
        if simulate(work, link, ranks, Plan(accumulate=count)).efficiency >= efficiency:
            return count
    return None


HEADS = ("model", "link", "alone", *(f"{n:,} ranks" for n in RANKS), "not overlapped", "ring", "bfloat16",
         "ZeRO-1", "best bucket", "batches for 90 %")  # fmt: skip
_LAST = RANKS[-1]
_VARIANTS = (Plan(overlap=False), Plan(algorithm="ring"), Plan(wire=2), Plan(zero=True))


def row(work: Workload, link: Link) -> list[str]:
    """The efficiency of weak scaling; after the numbers of ranks, of the most ranks with other plans."""
    bucket = best_bucket(work, link, _LAST)
    with_it = simulate(work, link, _LAST, Plan(bucket=bucket)).efficiency
    batches = accumulation(work, link, _LAST, 0.9)
    return [
        work.name,
        link.name,
        _seconds(simulate(work, link, 1).seconds),
        *(_percent(simulate(work, link, n).efficiency) for n in RANKS),
        *(_percent(simulate(work, link, _LAST, plan).efficiency) for plan in _VARIANTS),
        f"{bucket / MB:g} MB: {_percent(with_it)}",
        "-" if batches is None else str(batches),
    ]


def table() -> str:
    """All models and links, as Markdown."""
    rows = [HEADS, ("---",) * len(HEADS), *(row(*x) for x in itertools.product(WORKLOADS, LINKS))]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(HEADS))]
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths)) + " |" for cells in rows)


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _seconds(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


if __name__ == "__main__":
    print(table())
