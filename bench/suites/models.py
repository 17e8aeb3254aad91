"""Language models of known shapes beside llama.cpp, torch and onnxruntime: decoding, prompts, embeddings, the
time to the first token, and what a longer context costs.

Weights are random; `bench/gguf_files.py` and `bench/encoder_files.py` write them once. llama.cpp makes the
files in few bits, which it and polygrad read as they are; torch unpacks them. Who is right is torch in
float32 on the unpacked numbers. polygrad and llama.cpp round activations to 8 bits where weights have 8 or
fewer, and torch all of them to bfloat16 where weights are: the scores of these may be further off.
onnxruntime decodes GPT-2 in graphs that `bench/onnx_decoders.py` writes; of Q8_0 they have one scale for a
matrix, and of Q4_0 the file's numbers.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.contest import MODELS, ROOT, TOLERANCE, Case, Contest, Goal, Limit, Sampling
from bench.goals import at_most_times
from bench.hosts import CPYTHON, TIMEOUT, Unavailable, llama_python, peer_python
from bench.report import Result
from polygrad.pictures import chart

LLAMA, TORCH, ONNX = "llama.cpp", "torch", "onnxruntime"
JUDGE = "torch-float32"
SAMPLING, QUICK = Sampling(7, 0.4, min, process_time=True), Sampling(3, 0.2, min, process_time=True)
FORMATS = {"gpt2": ("F32", "BF16", "Q8_0", "Q4_0", "Q4_K"), "qwen2": ("F32", "BF16", "Q8_0", "Q4_0")}
NAMES = {"gpt2": "GPT-2 124M", "qwen2": "Qwen2 0.5B"}
CONTEXT, PROMPT = 64, 512
CONTEXTS = (64, 1072, 2080, 3088, 4096)  # equal steps, as the picture has them
SENTENCES, SENTENCE = 32, 64
THREADS = (1, 2)
READ = "plain read"
READ_SHARE = 0.85
_IN_8_BITS = {"Q8_0": 0.1, "Q4_0": 0.1, "Q4_K": 0.1}  # of the largest score, else 1e-3: activations are
TOLERANCES = {"BF16": 0.02, **_IN_8_BITS}  # small tensors are bfloat16, too
PEER_TOLERANCES = {"F32": 5e-3, "BF16": 0.05, **_IN_8_BITS}
NO_BLOCKS = "its products read no blocks of few bits"
# The formats of GPT-2's files that have a twin for onnxruntime. Qwen2's exceed protobuf's 2 GiB.
ONNX_FORMATS = ("F32", "Q8_0", "Q4_0")
COMPILED, CACHED = 1.5, 0.3  # seconds of compiling, and with a cache of what was compiled


def reads(share: float) -> Goal:
    """A step takes no longer than its weights would at this share of the speed of a plain read."""
    words = f"≥ {share:.0%} of the {READ}".replace("%", " %")
    return Goal(words, lambda f: READ in f.limits and f.value <= f.limits[READ] / share)


def path_of(shape: str, format_: str) -> Path:
    return MODELS / f"{shape}-{format_}.gguf"


def model_file(shape: str, format_: str) -> Path:
    """A GGUF file, made if it is not there. Raises Unavailable."""
    path = path_of(shape, format_)
    if path.exists():
        return path
    MODELS.mkdir(exist_ok=True)
    if format_ == "F32":
        make([str(peer_python()), "-m", "bench.gguf_files", str(path), shape])
    else:
        source = model_file(shape, "F32")
        make([str(llama_python()), "-m", "bench.libraries.with_llama", str(source), str(path), format_])
    return path


def onnx_folder(path: Path) -> Path:
    """The folder of a GGUF file's model for onnxruntime in native code, made if it is not there. Raises
    Unavailable."""
    folder = path.with_name(f"{path.stem}-native")
    if not (folder / "onnx" / "model.onnx").exists():
        make([str(peer_python()), "-m", "bench.onnx_decoders", str(path), str(folder), "signed"])
    return folder


def encoder_folder() -> Path:
    """The folder of the encoder, made if it is not there. Raises Unavailable."""
    folder = MODELS / "minilm"
    if not (folder / "model.onnx").exists():
        MODELS.mkdir(exist_ok=True)
        make([str(peer_python()), "-m", "bench.encoder_files", str(folder), str(SENTENCES), str(SENTENCE)])
    return folder


def make(command: list[str]) -> None:
    """Run what writes a file. Raises Unavailable with its last words."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable((done.stderr.strip() or "no file was written").splitlines()[-1])


def decoding(shape: str, format_: str, threads: int) -> Case:
    """A token of one sequence; the file is not there yet."""
    goals: tuple[Goal, ...] = (reads(READ_SHARE), at_most_times(1.0, LLAMA), at_most_times(1 / 1.3, TORCH))
    case = of_file("decode", f"{NAMES[shape]} {format_}: a token", format_, CONTEXT, threads, goals)
    if shape != "gpt2" or format_ not in ONNX_FORMATS:
        return case
    return replace(case, peers=(*case.peers, ONNX), goals=(*case.goals, at_most_times(1 / 1.3, ONNX)))


def prompts(shape: str, format_: str, threads: int) -> Case:
    """A prompt of 512 tokens."""
    goals = (at_most_times(1.11, LLAMA), at_most_times(1.0, TORCH))
    name = f"{NAMES[shape]} {format_}: a prompt of {PROMPT}"
    return of_file("prefill", name, format_, PROMPT, threads, goals)


def of_file(kind: str, name: str, format_: str, tokens: int, threads: int, goals: tuple[Goal, ...]) -> Case:
    has_blocks = format_.startswith("Q")
    return Case(
        name,
        kind,
        {"tokens": tokens, "dtype": "bfloat16" if format_ == "BF16" else "float32"},
        CPYTHON,
        threads,
        (LLAMA,) if has_blocks else (LLAMA, TORCH),
        goals,
        cannot={TORCH: NO_BLOCKS} if has_blocks else {},
        tolerance=TOLERANCES.get(format_, TOLERANCE),
        judge=JUDGE,
        peer_tolerance=PEER_TOLERANCES[format_],
    )


def embedding(threads: int) -> Case:
    """32 sentences by an encoder of MiniLM's shape."""
    goal = at_most_times(1 / 1.2, ONNX)
    sizes = {"sentences": SENTENCES, "tokens": SENTENCE}
    return Case(f"MiniLM F32: {SENTENCES} sentences of {SENTENCE} tokens", "embed", sizes, CPYTHON, threads,
                (ONNX, TORCH), (goal,), tolerance=TOLERANCE)  # fmt: skip


def run(quick: bool) -> Iterator[Result]:
    """Every row."""
    threads = THREADS[:1] if quick else THREADS
    with Contest("models", quick, QUICK if quick else SAMPLING) as contest:
        for shape, formats in FORMATS.items():
            if quick and shape != "gpt2":
                continue
            for format_ in formats:
                for count in threads:
                    yield measured(contest, decoding(shape, format_, count), shape, format_)
        for format_ in ("F32", "Q4_0"):
            for count in threads:
                yield measured(contest, prompts("gpt2", format_, count), "gpt2", format_)
        for count in threads:
            try:
                sizes = {**embedding(count).sizes, "path": str(encoder_folder())}
                yield contest.measure(replace(embedding(count), sizes=sizes))
            except Unavailable as reason:
                yield unavailable(embedding(count), reason)
        if not quick:
            yield from contexts(contest)
    for shape, format_ in (("gpt2", "F32"), ("gpt2", "Q4_0")) if quick else first_files():
        yield from first_tokens(shape, format_)


def first_files() -> Iterator[tuple[str, str]]:
    return ((shape, format_) for shape, formats in FORMATS.items() for format_ in formats)


def measured(contest: Contest, case: Case, shape: str, format_: str) -> Result:
    """A case with its file, and the read of as many bytes as a token reads."""
    try:
        path = model_file(shape, format_)
        limit = Limit(READ, "polygrad", case.threads, "read", {"bytes": path.stat().st_size})
        limits = (limit,) if case.kind == "decode" else ()
        case = replace(case, sizes={**case.sizes, "path": str(path)}, limits=limits)
        return contest.measure(with_onnx_folder(case, path))
    except Unavailable as reason:
        return unavailable(case, reason)


def with_onnx_folder(case: Case, path: Path) -> Case:
    """A case with the folder that onnxruntime reads, if it is one of its peers, or without that peer where
    the folder cannot be made."""
    if ONNX not in case.peers:
        return case
    try:
        return replace(case, sizes={**case.sizes, "onnx": str(onnx_folder(path))})
    except Unavailable as reason:
        others = tuple(peer for peer in case.peers if peer != ONNX)
        return replace(case, peers=others, cannot={**case.cannot, ONNX: str(reason)})


def contexts(contest: Contest) -> Iterator[Result]:
    """A token of ever longer contexts: the weights are the same, so all that grows is attention."""
    for case in context_cases():
        yield measured(contest, case, "qwen2", "Q8_0")


def context_cases() -> Iterator[Case]:
    """The rows of `contexts`, from the shortest on."""
    for count in CONTEXTS:
        yield of_file("decode", f"context of {count}: Qwen2 0.5B Q8_0, a token", "Q8_0", count, 1, ())


def draw(results: list[Result]) -> None:
    """The picture of what a token costs as its context grows, if these rows are there."""
    rows = [r for r in results if r.case.startswith("context of ") and r.value is not None]
    if len(rows) < len(CONTEXTS):
        return
    series = {"polygrad": [r.value or math.nan for r in rows]}
    series |= {name: [r.peers.get(name, math.nan) for r in rows] for name in rows[0].peers}
    text = chart(
        series, "Qwen2 0.5B Q8_0, one thread: ms for a token", "context", x_range=(CONTEXTS[0], CONTEXTS[-1])
    )
    (ROOT / "bench" / "pictures" / "models-contexts.svg").write_text(text)


def first_tokens(shape: str, format_: str) -> Iterator[Result]:
    """From a file to the first token: with nothing compiled yet, then with what that kept."""
    with tempfile.TemporaryDirectory(prefix="polygrad-bench-") as cache:
        for words, compiling in (("nothing compiled", COMPILED), ("compiled before", CACHED)):
            yield first_token(shape, format_, words, compiling, cache)


def first_token(shape: str, format_: str, words: str, compiling: float, cache: str) -> Result:
    case = f"{NAMES[shape]} {format_}: first token, {words}"
    target = f"≤ 1.2× the read of the file and {compiling:g} s"
    try:
        command = [sys.executable, "-m", "bench.first_token", str(model_file(shape, format_))]
        environment = os.environ | {
            "DEVICE": "CPU",
            "PYTHONPATH": str(ROOT),
            "POLYGRAD_CACHE": cache,
            "POLYGRAD_THREADS": "2",
        }
        done = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT
        )
        if done.returncode:
            raise Unavailable(done.stderr.strip().splitlines()[-1])
        found = json.loads(done.stdout.strip().splitlines()[-1])
    except Unavailable as reason:
        skipped = {"polygrad": str(reason)}
        return Result("models", case, CPYTHON, "CPU", None, "ms", "lower", target, False, skipped=skipped)
    met = found["value"] <= 1.2 * found["read"] + compiling
    target += f"; read {found['read'] * 1e3:.0f} ms"
    return Result("models", case, CPYTHON, "CPU", found["value"] * 1e3, "ms", "lower", target, met, 2)


def unavailable(case: Case, reason: Unavailable) -> Result:
    skipped = dict.fromkeys(("polygrad", *case.peers), str(reason))
    words = "; ".join(goal.words for goal in case.goals) or "-"
    return Result("models", case.name, case.host, case.device, None, case.unit, "lower", words, False,
                  case.threads, skipped=skipped)  # fmt: skip
