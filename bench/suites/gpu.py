"""GPUs: what a step does with WebGPU, counted; what the host does for it; and, on the adapter that there is,
products, a training step and a transformer block beside the peers, all in the page.

Where there is no GPU the adapter is software, SwiftShader: times then say which library gives a *processor*
less to do, not how fast a GPU would be. Counts are the same on any adapter.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from bench.channel import Channel
from bench.contest import TOLERANCE, Case, Contest, Sampling
from bench.goals import times_best_peer
from bench.hosts import (
    CHROMIUM,
    NODE,
    ROOT,
    Unavailable,
    peer_python,
    pyodide_node,
    pyodide_node_webgpu,
)
from bench.report import Result
from bench.suites import cuda, matmul
from bench.traffic import traffic_of
from polygrad import Tensor
from polygrad.codegen.lower.passes import LoweringContext, lower, run_passes
from polygrad.codegen.target import Target, Workgroups
from polygrad.engine.normalize import normalize
from polygrad.schedule.schedule import schedule
from polygrad.uop.node import UOp

sys.path.append(str(ROOT / "examples"))
from demo import vulkan_driver

WEBGPU = "WEBGPU"
PEERS = ("jax-js", "onnxruntime-web", "tfjs-webgpu")
BY_HAND = "by hand"  # the calls of WebGPU themselves, with no library
TRAINERS = ("jax-js", "tfjs-webgpu")
NO_TRAINING = {"onnxruntime-web": "does not train"}
SIZES = [(256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (500, 333, 777)]
# Whatever else a machine does only adds time, and on a software adapter a peer's step may take ten seconds.
SAMPLING = Sampling(3, 0.3, min, hopeless=4)
STEPS = 5  # of which the page's work with the GPU is counted
TIMED = 100  # of which the host's time is taken,
ROW = 10  # by themselves, and so many in a row,
TURNS = 3  # in turn with the same calls by hand
HOST_MICROSECONDS, BYTES_READ, COMPILE_RATIO = 60, 1 / 16, 1.5
# WebGPU's default limits: what every adapter has.
DEFAULT_TARGET = Target(
    WEBGPU, simd_bytes=16, index_bits=32, workgroups=Workgroups(), max_buffers=8, alignment=256, float64=False
)

Judge = Callable[[float, dict[str, float]], bool]  # (ours, peers) -> target met


def case(name: str, kind: str, factor: float, peers: tuple[str, ...], **more: Any) -> Case:
    better = "higher" if "flops" in more else "lower"
    goals = (times_best_peer(factor, better),)
    return Case(name, kind, more.pop("sizes", {}), CHROMIUM, 1, peers, goals, on=WEBGPU, **more)


def product(size: tuple[int, int, int]) -> Case:
    m, k, n = size
    sizes, flops = {"m": m, "k": k, "n": n}, 2.0 * m * k * n
    return case(f"product {matmul.name(size)}", "matmul", 1.0, PEERS, sizes=sizes, flops=flops)


MLP = case("mlp step", "mlp", 1.5, TRAINERS, cannot=NO_TRAINING)
HUNDRED = case("100 kernels", "hundred", 1.5, PEERS)
STEPS_OF = [
    MLP,
    case("block forward", "block-forward", 1.5, PEERS),
    case("block step", "block-step", 1.5, TRAINERS, cannot=NO_TRAINING),
]


def run(quick: bool, part: str = "all", small: bool = False) -> Iterator[Result]:
    """`part`: "page" is what a page does with WebGPU, "cuda" an NVIDIA GPU, which `small` is for."""
    for name, value in vulkan_driver().items():
        os.environ.setdefault(name, value)
    if part in ("all", "page"):
        yield bytes_read()
        yield compile_time(1 if quick else 3)
        with Contest("gpu", quick, SAMPLING) as contest:
            yield from counts(contest)
            yield from host_times(contest)
            yield from contest.run([*map(product, SIZES), *STEPS_OF])
    if part in ("all", "cuda"):
        yield from cuda.run(quick, small)


def renewed(kept: list[Result], found: list[Result]) -> list[Result]:
    """The rows of an earlier run with those that were measured again in their places."""
    rows = {(r.case, r.host, r.device): r for r in (*kept, *found)}
    return list(rows.values())


def result(
    name: str,
    value: float | None,
    unit: str,
    target: str,
    met: Judge,
    *,
    host: str = CHROMIUM,
    peers: dict[str, float] | None = None,
    skipped: dict[str, str] | None = None,
) -> Result:
    found = peers or {}
    return Result(
        suite="gpu",
        case=name,
        host=host,
        device=WEBGPU,
        value=value,
        unit=unit,
        better="lower",
        target=target,
        met=value is not None and met(value, found),
        peers=found,
        skipped=skipped or {},
    )


# --- what is made of a product


def product_kernel(n: int) -> UOp:
    """The kernel of a product of squares, as the scheduler makes it."""
    a, b = (Tensor.zeros(n, n, device="INTERP").contiguous().realize() for _ in range(2))
    (call,) = schedule(normalize(UOp.sink((a @ b).uop.base)).sink, True).calls
    return call.ast.replace(arg=None)


def bytes_read() -> Result:
    """Of a product of 1,024 squared, beside the kernel that has an invocation for each sum."""
    kernel = product_kernel(1024)
    naive = run_passes(kernel, LoweringContext(DEFAULT_TARGET, True, ()))
    share = traffic_of(lower(kernel, DEFAULT_TARGET)).read / traffic_of(naive).read
    target = f"≤ 1/{1 / BYTES_READ:.0f}"
    return result(
        "product 1024: bytes read",
        share,
        "of the naive kernel's",
        target,
        lambda value, _: value <= BYTES_READ,
        host="any",
    )


# --- compile time


def compile_time(repeats: int) -> Result:
    """Seconds until all of a GPT's forward pass has been handed to the GPU, from a cold start, without what
    the driver's compiler takes, beside the same on WASM with the run and what the engine's takes."""
    ours: list[float] = []
    wasm: list[float] = []
    driver: list[float] = []
    skipped: dict[str, str] = {}
    for i in range(repeats):
        print(f"gpt-forward {NODE} {i + 1}/{repeats}", file=sys.stderr, flush=True)
        try:
            on_gpu = pyodide_node_webgpu("polygrad", "gpt-forward")
            on_wasm = pyodide_node("polygrad", "gpt-forward")
        except Unavailable as reason:
            skipped["polygrad"] = str(reason)
            break
        if abs(on_gpu["check"] - on_wasm["check"]) > TOLERANCE * abs(on_wasm["check"]):
            skipped["polygrad"] = f"computed {on_gpu['check']}, on WASM {on_wasm['check']}"
            break
        ours.append(on_gpu["handed"] - on_gpu["driver"])
        wasm.append(on_wasm["value"])
        driver.append(on_gpu["driver"])
    if skipped:
        return result("gpt-forward", None, "s", "-", lambda value, _: False, host=NODE, skipped=skipped)
    limit = COMPILE_RATIO * median(wasm)
    apart = f"the driver's compiler {median(driver):.2f} s apart"
    target = f"≤ {COMPILE_RATIO:g}× WASM's {median(wasm):.2f} s; {apart}"
    return result("gpt-forward", median(ours), "s", target, lambda value, _: value <= limit, host=NODE)


# --- what a page does with the GPU


def counts(contest: Contest) -> Iterator[Result]:
    """Of captured steps that have run before: submits, and pipelines and bind groups that were there."""
    found: dict[str, dict[str, Any]] = {}
    skipped: dict[str, str] = dict(MLP.cannot)
    for library in ("polygrad", *MLP.peers):
        try:
            found[library] = on_the_gpu(contest, library, MLP, STEPS)
        except Unavailable as reason:
            skipped[library] = str(reason)
    for what, name, most in (
        ("submits", "submits", 1),
        ("pipelinesAgain", "pipelines made twice", 0),
        ("bindGroupsAgain", "bind groups made twice", 0),
    ):
        each = {library: seen[what] / STEPS for library, seen in found.items()}
        value = each.pop("polygrad", None)
        met = functools.partial(lambda most, value, _: value <= most, most)
        yield result(f"mlp step: {name}", value, "a step", f"≤ {most}", met, peers=each, skipped=skipped)


def on_the_gpu(contest: Contest, library: str, case: Case, steps: int, row: int = 1) -> dict[str, Any]:
    """What a library's page did with the GPU in so many steps, and how long the host took for each `row`."""
    ask = contest.prepared(library, case)
    ask({"op": "gpu", "steps": 3, "row": 1})  # what is made at first is made
    return ask({"op": "gpu", "steps": steps, "row": row})


def host_times(contest: Contest) -> Iterator[Result]:
    """Microseconds until a step of a hundred kernels has been handed to the GPU: of ten steps one after the
    other, and of one that begins when the GPU is done with the one before."""
    skipped: dict[str, str] = {}  # who gave no answer is not asked again
    for row in (ROW, 1):
        yield host_time(contest, row, skipped)


def host_time(contest: Contest, row: int, skipped: dict[str, str]) -> Result:
    """The quickest of some, beside the peers' and the browser's own part, in the same pages."""
    handed: dict[str, list[float]] = {}
    recorded: list[float] = []
    for library in (*HUNDRED.peers, *(["polygrad", BY_HAND] * TURNS)):
        if library in skipped:
            continue
        try:
            seen = on_the_gpu(contest, library, HUNDRED, TIMED, row)
        except Unavailable as reason:
            skipped[library] = str(reason)
            continue
        handed.setdefault(library, []).extend(seen["handed"])
        if library == "polygrad":
            recorded += seen["recorded"]
    peers = {library: 1e3 * min(milliseconds) for library, milliseconds in handed.items()}
    words = [f"≤ {HOST_MICROSECONDS} µs"]
    if recorded:
        words.append(f"recording and submit {1e3 * min(recorded):.0f} µs of it")
    if (floor := peers.pop(BY_HAND, None)) is not None:
        words.append(f"the same calls by hand {floor:.0f} µs")
    if row == ROW:
        words += calls_by_hand(contest)
    try:
        peers["tinygrad"] = 1e6 * tinygrad_host_seconds()
    except Unavailable as reason:
        skipped["tinygrad"] = str(reason)
    value = peers.pop("polygrad", None)
    how = f"{row} steps in a row" if row > 1 else "a step by itself"
    return result(
        f"100 kernels, {how}: the host's part",
        value,
        "µs",
        "; ".join(words),
        lambda value, _: value <= HOST_MICROSECONDS,
        peers=peers,
        skipped=dict(skipped),
    )


def calls_by_hand(contest: Contest) -> list[str]:
    """What a hundred calls of each kind take the browser, in words; nothing where that cannot be had."""
    try:
        each = contest.prepared(BY_HAND, HUNDRED)({"op": "calls"})
    except Unavailable:
        return []
    return ["of that " + ", ".join(f"{name} {microseconds:.1f}" for name, microseconds in each.items())]


def tinygrad_host_seconds() -> float:
    """The same of tinygrad, which has WebGPU under CPython, through Dawn."""
    environment = {"PYTHONPATH": str(ROOT), "DEV": WEBGPU, "WEBGPU_PATH": dawn_library()}
    channel = Channel([str(peer_python()), "-m", "bench.worker", "tinygrad"], environment)
    try:
        channel.ask({"op": "prepare", "slot": "case", "kind": HUNDRED.kind, "sizes": {}})
        seconds: float = channel.ask({"op": "host", "slot": "case"})["value"]
        return seconds
    finally:
        channel.close()


def dawn_library() -> str:
    """Dawn as a shared library, which tinygrad loads; it is fetched when it is not there."""
    folder = ROOT / "bench" / ".cache" / "dawn"
    if not folder.exists():
        pip = [str(peer_python()), "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
        if subprocess.run([*pip, "dawn-python==0.3.0"], stdout=sys.stderr).returncode:
            raise Unavailable("Dawn could not be installed (pip failed, see above)")
    machine = os.uname().machine
    found = next(folder.glob(f"pydawn/lib/libwebgpu_dawn_{machine}.so"), None)
    if found is None:
        raise Unavailable(f"Dawn's package has no library for {machine}")
    return str(found)
