"""One rank of the suite `distributed`: `python -m bench.distributed_rank LIBRARY KIND SECONDS`, prints JSON.

LIBRARY: polygrad, or torch with DistributedDataParallel. KIND: a step of "mlp" or "block"; "mlp-alone" or
"block-alone", without communication; "all-reduce", of 100 MB, or "all-reduce-engine", the engine's own call.
A rank has one core of its own.
"""

import functools
import itertools
import json
import os
import statistics
import sys
import time
from typing import Any

WIDTHS = (1024, 2048, 2048, 2048)  # 10.5 million parameters
ROWS = 256
WIDTH, HEADS, LENGTH, TEXTS = 768, 12, 128, 4  # a block of GPT-2
REDUCED = 25_000_000  # float32 numbers
MIN_STEPS = 3


def polygrad_step(kind: str, alone: bool) -> Any:
    """A function that takes a step."""
    from polygrad import Tensor, compile_step, distributed, nn

    class MLP:
        def __init__(self) -> None:
            self.layers = [nn.Linear(a, b) for a, b in itertools.pairwise(WIDTHS)]

        def __call__(self, x: Any) -> Any:
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)

    model = MLP() if kind == "mlp" else nn.TransformerBlock(WIDTH, HEADS)
    shape = (ROWS, WIDTHS[0]) if kind == "mlp" else (TEXTS, LENGTH, WIDTH)
    x = Tensor.randn(*shape).contiguous().realize()
    optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=1e-4)
    make = compile_step if alone else distributed.DataParallel
    step = make(lambda model, x: model(x).square().mean(), model, optimizer, x)
    return lambda: (step.run(x), step.loss_value())


def torch_step(kind: str, alone: bool) -> Any:
    import torch
    from torch import nn

    if kind == "mlp":
        layers = [m for a, b in itertools.pairwise(WIDTHS) for m in (nn.Linear(a, b), nn.ReLU())]
        model: Any = nn.Sequential(*layers[:-1])
    else:
        model = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True
        )
    x = torch.randn((ROWS, WIDTHS[0]) if kind == "mlp" else (TEXTS, LENGTH, WIDTH))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    parallel = model if alone else nn.parallel.DistributedDataParallel(model)

    def step() -> None:
        optimizer.zero_grad()
        loss = parallel(x).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def all_reduce(library: str, by_engine: bool) -> Any:
    import numpy as np

    if library == "torch":
        import torch

        t = torch.zeros(REDUCED)
        return lambda: torch.distributed.all_reduce(t)
    from polygrad import Tensor, distributed
    from polygrad.distributed.group import group

    if by_engine:
        array = np.zeros(REDUCED, np.float32)
        return lambda: group().engine.all_reduce(array, "sum")
    x = Tensor.zeros(REDUCED).contiguous().realize()
    return functools.partial(distributed.all_reduce_, x)


def main(library: str, kind: str, seconds: float) -> None:
    local = int(os.environ.get("LOCAL_RANK", os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", 0)))
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[local % len(cores)]})
    name, _, how = kind.partition("-")
    if library == "torch":
        import torch

        torch.set_num_threads(1)
        torch.distributed.init_process_group("gloo")
        rank, barrier = torch.distributed.get_rank(), torch.distributed.barrier
    else:
        from polygrad import distributed

        distributed.init(timeout=200)
        rank, barrier = distributed.rank(), distributed.barrier
    if name == "all":
        step = all_reduce(library, how.endswith("engine"))
    else:
        step = (torch_step if library == "torch" else polygrad_step)(name, how == "alone")
    for _ in range(2):
        step()
    barrier()
    found: list[float] = []
    # all ranks take as many steps
    first = time.perf_counter()
    step()
    count = max(MIN_STEPS, int(seconds / (time.perf_counter() - first)))
    if library == "torch":
        counts = [None] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(counts, count)
    else:
        counts = distributed.all_gather_json(count)
    for _ in range(counts[0]):
        start = time.perf_counter()
        step()
        found.append(time.perf_counter() - start)
    barrier()
    if rank == 0:
        print(json.dumps({"seconds": statistics.median(found)}), flush=True)
    if library == "torch":
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
