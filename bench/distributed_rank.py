"""One rank of the suite `distributed`: `python -m bench.distributed_rank --help`; rank 0 prints JSON.

Kinds: a data-parallel step of "mlp" or "block"; "mlp-alone" or "block-alone", without communication;
"all-reduce" of a Tensor of 100 MB, or "all-reduce-engine", the engine's own call: seconds of each. "hidden":
what part of the time of exchanges in a step of "mlp" a Program runs.
A rank has one core of its own, where there are enough.
"""

import argparse
import functools
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROUNDS = 3  # in which all kinds take their turn
MIN_STEPS = 2
TIMEOUT = 200.0  # seconds for the other ranks to compile


@dataclass(frozen=True)
class Sizes:
    """Of the MLP its widths and rows, of the block its width, heads, and texts of some tokens; float32
    numbers of a sum; and the bytes of buckets in the timeline."""

    widths: tuple[int, ...] = (1024, 2048, 2048, 2048)  # 10.5 million parameters
    rows: int = 256
    width: int = 768  # a block of GPT-2
    heads: int = 12
    length: int = 128
    texts: int = 4
    reduced: int = 25_000_000
    bucket: int = 4 << 20


LARGE = Sizes()
SMALL = Sizes((64, 96, 96, 96), 8, 64, 4, 16, 2, 100_000, 1 << 12)


def polygrad_step(kind: str, alone: bool, sizes: Sizes) -> Any:
    """A function that takes a step."""
    step, x = polygrad_work(kind, alone, sizes)
    return lambda: (step.run(x), step.loss_value())


def polygrad_work(kind: str, alone: bool, sizes: Sizes, **options: Any) -> Any:
    """A step and its input. `options`: of DataParallel."""
    from polygrad import Tensor, compile_step, distributed, nn

    class MLP:
        def __init__(self) -> None:
            self.layers = [nn.Linear(a, b) for a, b in itertools.pairwise(sizes.widths)]

        def __call__(self, x: Any) -> Any:
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)

    model = MLP() if kind == "mlp" else nn.TransformerBlock(sizes.width, sizes.heads)
    x = Tensor.randn(*_shape(kind, sizes)).contiguous().realize()
    optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=1e-4)
    make = compile_step if alone else functools.partial(distributed.DataParallel, **options)
    return make(lambda model, x: model(x).square().mean(), model, optimizer, x), x


def _shape(kind: str, sizes: Sizes) -> tuple[int, ...]:
    return (sizes.rows, sizes.widths[0]) if kind == "mlp" else (sizes.texts, sizes.length, sizes.width)


def torch_step(kind: str, alone: bool, sizes: Sizes) -> Any:
    import torch
    from torch import nn

    if kind == "mlp":
        layers = [m for a, b in itertools.pairwise(sizes.widths) for m in (nn.Linear(a, b), nn.ReLU())]
        model: Any = nn.Sequential(*layers[:-1])
    else:
        model = nn.TransformerEncoderLayer(
            sizes.width, sizes.heads, 4 * sizes.width, 0.0, "gelu", batch_first=True, norm_first=True
        )
    x = torch.randn(_shape(kind, sizes))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    parallel = model if alone else nn.parallel.DistributedDataParallel(model)

    def step() -> None:
        optimizer.zero_grad()
        loss = parallel(x).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def all_reduce(by_engine: bool, sizes: Sizes) -> Any:
    import numpy as np

    from polygrad import Tensor, distributed
    from polygrad.distributed.group import group

    if by_engine:
        array = np.zeros(sizes.reduced, np.float32)
        return lambda: group().engine.all_reduce(array, "sum")
    x = Tensor.zeros(sizes.reduced).contiguous().realize()
    return functools.partial(distributed.all_reduce_, x)


def hidden(sizes: Sizes, picture: Path | None) -> float:
    """The part of the exchanges' time in which a Program runs. `picture`: where the timeline is drawn."""
    from polygrad import distributed
    from polygrad.pictures import timeline, trace

    step, x = polygrad_work("mlp", False, sizes, bucket_bytes=sizes.bucket)
    found = trace(functools.partial(step.run, x))
    if picture is not None and distributed.rank() == 0:
        picture.write_text(timeline(found), encoding="utf-8")
    return found.hidden / sum(span.seconds for span in found.of_kind("exchange"))


def make(library: str, kind: str, sizes: Sizes) -> Callable[[], object]:
    name, _, how = kind.partition("-")
    if name == "all":
        return all_reduce(how.endswith("engine"), sizes)
    return (torch_step if library == "torch" else polygrad_step)(name, how == "alone", sizes)


class Ranks:
    """What both libraries' processes do together."""

    def __init__(self, library: str) -> None:
        self._is_torch = library == "torch"
        if self._is_torch:
            import torch

            torch.set_num_threads(1)
            torch.distributed.init_process_group("gloo")
            self.rank, self.size = torch.distributed.get_rank(), torch.distributed.get_world_size()
            self.barrier: Callable[[], object] = torch.distributed.barrier
        else:
            from polygrad import distributed

            distributed.init(timeout=TIMEOUT)
            self.rank, self.size, self.barrier = distributed.rank(), distributed.size(), distributed.barrier

    def of_rank_0(self, value: Any) -> Any:
        if self._is_torch:
            import torch

            values = [value]
            torch.distributed.broadcast_object_list(values)
            return values[0]
        from polygrad import distributed

        return distributed.broadcast_json(value)

    def close(self) -> None:
        self.barrier()
        if self._is_torch:
            import torch

            torch.distributed.destroy_process_group()


def measure(steps: dict[str, Callable[[], object]], seconds: float, ranks: Ranks) -> dict[str, float]:
    """The best median of some rounds, of each; all ranks take as many steps."""
    counts = {}
    for kind, step in steps.items():
        for _ in range(2):
            step()
        ranks.barrier()
        start = time.perf_counter()
        step()
        took = time.perf_counter() - start
        counts[kind] = ranks.of_rank_0(max(MIN_STEPS, int(seconds / ROUNDS / took)))
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for kind, step in steps.items():
            found = []
            ranks.barrier()
            for _ in range(counts[kind]):
                start = time.perf_counter()
                step()
                found.append(time.perf_counter() - start)
            best[kind] = min(best.get(kind, float("inf")), statistics.median(found))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.distributed_rank")
    parser.add_argument("library", choices=("polygrad", "torch"))
    parser.add_argument("kinds", help="separated by commas")
    parser.add_argument("ranks", type=int)
    parser.add_argument("seconds", type=float, help="of each kind")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--picture", type=Path, help="the file of the timeline of the kind hidden")
    arguments = parser.parse_args()
    names = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")  # of torch, Open MPI, MPICH
    local = next((int(os.environ[name]) for name in names if name in os.environ), 0)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[local % len(cores)]})
    ranks = Ranks(arguments.library)
    if ranks.size != arguments.ranks:
        raise SystemExit(f"expected {arguments.ranks} ranks, got {ranks.size}")
    sizes = SMALL if arguments.small else LARGE
    kinds = arguments.kinds.split(",")
    timed = {kind: make(arguments.library, kind, sizes) for kind in kinds if kind != "hidden"}
    found = measure(timed, arguments.seconds, ranks)
    if "hidden" in kinds:
        found["hidden"] = hidden(sizes, arguments.picture)
    if ranks.rank == 0:
        print(json.dumps(found), flush=True)
    ranks.close()


if __name__ == "__main__":
    main()
