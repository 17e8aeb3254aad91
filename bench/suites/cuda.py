"""CUDA beside torch, eager and compiled, and tinygrad: the rows of `python -m bench gpu` for a machine with
an NVIDIA GPU. Where something is missing (the package, the driver, the GPU) the rows say what.

`--small` has them run on sizes that take no time, to see that they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import median

from bench.contest import Case, Contest, Limit, Sampling
from bench.goals import at_most_times, share_of, share_of_peer
from bench.hosts import CPYTHON
from bench.libraries.shapes import GPT2
from bench.report import Result
from polygrad import Device
from polygrad.errors import DeviceError

CUDA, WEBGPU = "CUDA", "WEBGPU"
PEERS = ("torch", "torch-compile", "tinygrad")
SAMPLING, QUICK = Sampling(7, 0.3, median), Sampling(3, 0.1, median)
TOLERANCES = {"float32": 1e-3, "float16": 1e-2, "bfloat16": 2e-2}


@dataclass(frozen=True)
class Sizes:
    """`side`: of the matrices of a product; `rows` by `columns`: of what is normalised."""

    side: int
    rows: int
    columns: int
    gpt2: GPT2


FULL = Sizes(
    4096, 16_384, 4096, GPT2(batch=8, length=1024, layers=12, width=768, heads=12, vocabulary=50_257)
)
SMALL = Sizes(64, 32, 64, GPT2(batch=2, length=16, layers=1, width=32, heads=2, vocabulary=64))


def run(quick: bool, small: bool = False) -> Iterator[Result]:
    rows = [*cases(SMALL if small else FULL), webgpu_product(SMALL if small else FULL)]
    if reason := missing():
        yield from (unavailable(case, reason) for case in rows)
        return
    with Contest("gpu", quick, QUICK if quick or small else SAMPLING) as contest:
        yield from contest.run(rows)


def missing() -> str:
    """Why there is no CUDA; empty where there is."""
    try:
        Device[CUDA]
    except DeviceError as reason:
        return str(reason)
    return ""


def unavailable(case: Case, reason: str) -> Result:
    goals = "; ".join(goal.words for goal in case.goals)
    return Result(
        "gpu", case.name, case.host, case.device, None, case.unit, "lower", goals, False,
        skipped={"polygrad": reason},
    )  # fmt: skip


def cases(sizes: Sizes, device: str = CUDA, peers: tuple[str, ...] = PEERS) -> list[Case]:
    """The rows: `device` is another in the tests, which have no GPU."""
    normalised = {"rows": sizes.rows, "columns": sizes.columns}
    gpt2 = sizes.gpt2
    step = f"GPT-2 step, {gpt2.layers} layers of {gpt2.width}, {gpt2.batch}×{gpt2.length}, bfloat16"

    def case(
        name: str, kind: str, of: dict[str, object], *goals, dtype: str = "float32", flops: float = 0.0
    ) -> Case:  # type: ignore[no-untyped-def]
        tolerance = TOLERANCES[dtype]
        return Case(name, kind, of, CPYTHON, 1, peers, goals, flops, tolerance=tolerance, on=device)

    return [
        *(
            case(
                f"product {dtype} {sizes.side}",
                "matmul",
                _product(sizes.side) | {"dtype": dtype},
                share_of_peer("torch", share),
                dtype=dtype,
                flops=2.0 * sizes.side**3,
            )
            for dtype, share in (("float16", 0.6), ("float32", 0.8))
        ),
        case(f"softmax {sizes.rows}×{sizes.columns}", "softmax", normalised, at_most_times(1, "torch")),
        case(f"layernorm {sizes.rows}×{sizes.columns}", "layernorm", normalised, at_most_times(1, "torch")),
        case(
            step,
            "gpt2",
            asdict(gpt2) | {"dtype": "bfloat16"},
            at_most_times(2, "torch-compile"),
            dtype="bfloat16",
        ),
    ]


def webgpu_product(sizes: Sizes, of: str = CUDA) -> Case:
    """WebGPU on the same GPU's Vulkan driver, beside CUDA."""
    product, flops = _product(sizes.side), 2.0 * sizes.side**3
    same = f"same on {of}"
    limit = Limit(same, "polygrad", 1, "matmul", product, flops, on=of)
    return Case(
        f"product float32 {sizes.side}", "matmul", product, CPYTHON, 1, (), (share_of(same, 0.5),), flops,
        (limit,), on=WEBGPU,
    )  # fmt: skip


def _product(side: int) -> dict[str, object]:
    return {"m": side, "k": side, "n": side}
