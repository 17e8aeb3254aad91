"""Matrix multiplication, float32: against the peak of the engine in a page, against BLAS natively."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.contest import Case, Contest, Goal, Limit
from bench.goals import share_of, times, times_best_peer
from bench.hosts import CHROMIUM, CPYTHON
from bench.libraries.with_peak import native_flops
from bench.peak import FLOPS
from bench.report import Result

SIZES = [
    (64, 64, 64),
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (500, 333, 777),
]
PAGE_PEERS = ("jax-js", "onnxruntime-web", "tfjs-wasm")
PEERS = ("numpy", "torch", "tinygrad")  # torch.compile calls the same function
PAGE_PEAK = Limit("peak", "peak", 1, "peak", {}, FLOPS)
NATIVE_PEAK = Limit("peak", "peak", 1, "peak", {}, native_flops())


def name(size: tuple[int, int, int]) -> str:
    return f"{size[0]}" if len(set(size)) == 1 else "×".join(map(str, size))


def page_goals(size: tuple[int, int, int], threads: int) -> tuple[Goal, ...]:
    shares = {"64": 0.5, "512": 0.85, "1024": 0.85, "500×333×777": 0.75}
    goals = []
    if threads == 1 and name(size) in shares:
        goals.append(share_of("peak", shares[name(size)]))
    if name(size) not in ("64", "500×333×777"):
        goals.append(times_best_peer(1.5))
        if threads == 2:
            goals.append(times("one thread", 1.8))
    return tuple(goals)


def native_goals(size: tuple[int, int, int], avx512: bool) -> tuple[Goal, ...]:
    if name(size) == "64":
        return ()
    odd = len(set(size)) > 1
    return (times_best_peer(1.3 if odd else 1.7 if avx512 else 1.0),)


def case(size: tuple[int, int, int], host: str, threads: int, goals: tuple[Goal, ...]) -> Case:
    m, k, n = size
    peers = PAGE_PEERS if host == CHROMIUM else PEERS
    sizes, flops = {"m": m, "k": k, "n": n}, 2.0 * m * k * n
    limits: tuple[Limit, ...] = ()
    if host == CHROMIUM:
        limits = (
            (PAGE_PEAK,) if threads == 1 else (Limit("one thread", "polygrad", 1, "matmul", sizes, flops),)
        )
    elif threads == 1:
        limits = (NATIVE_PEAK,)
    return Case(name(size), "matmul", sizes, host, threads, peers, goals, flops, limits)


def has_avx512() -> bool:
    information = Path("/proc/cpuinfo")
    return information.exists() and "avx512f" in information.read_text()


def run(quick: bool) -> Iterator[Result]:
    avx512 = has_avx512()
    with Contest("matmul", quick) as contest:
        yield from contest.run([case(s, CHROMIUM, t, page_goals(s, t)) for t in (1, 2) for s in SIZES])
        yield from contest.run([case(s, CPYTHON, t, native_goals(s, avx512)) for t in (1, 2) for s in SIZES])
