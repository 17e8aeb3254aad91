"""Language models in a page beside transformers.js: decoding, the first token, and sentences beside
onnxruntime-web; writing after contexts of several lengths, also beside wllama.

The models are small (6 layers of 512), with random weights. `bench/gguf_files.py` writes them in float32,
Q8_0 and Q4_0, `bench/onnx_decoders.py` as ONNX. Who is right is torch in float32 on the unpacked numbers;
onnxruntime rounds activations of products in 8 and 4 bits to 8 bits. The benchmark's server has the files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from bench.contest import MODELS, TOLERANCE, Case, Contest, Limit, Sampling
from bench.goals import at_most_times
from bench.hosts import CHROMIUM, CPYTHON, DEVICES, Unavailable, peer_python
from bench.report import Result
from bench.suites import models
from bench.suites.models import (
    CONTEXT,
    JUDGE,
    READ,
    SENTENCE,
    SENTENCES,
    TOLERANCES,
    encoder_folder,
    make,
    path_of,
    reads,
)

TRANSFORMERS, WLLAMA, ONNX = "transformers.js", "wllama", "onnxruntime-web"
SAMPLING, QUICK = Sampling(8, 0.2, min, most=24), Sampling(3, 0.1, min)
SHAPES = {"small-gpt2": "GPT-2 6×512", "small-qwen2": "Qwen2 6×512"}
FORMATS = ("F32", "Q8_0", "Q4_0")
PEER_TOLERANCES = {"F32": TOLERANCE, "Q8_0": 0.1, "Q4_0": 0.1}
THREADS = (1, 2)
READ_SHARE = 0.75
FIRST_ROUNDS = 3
LONG, LONG_NAME = "long-qwen2", "Qwen2 6×512"
LONG_FORMATS, CONTEXTS, WRITTEN = ("F32", "Q8_0"), (64, 512, 2048), 32


def model_file(shape: str, format_: str) -> Path:
    """A GGUF file, and the same beside it as a folder for transformers.js, made if they are not there. Raises
    Unavailable."""
    path = path_of(shape, format_)
    MODELS.mkdir(exist_ok=True)
    if not path.exists():
        make([str(peer_python()), "-m", "bench.gguf_files", str(path), shape, format_])
    if not (path.with_suffix("") / "onnx" / "model.onnx").exists():
        make([str(peer_python()), "-m", "bench.onnx_decoders", str(path), str(path.with_suffix(""))])
    return path


def decoding(shape: str, format_: str, threads: int) -> Case:
    """A token of one sequence; the file is not there yet."""
    return Case(
        f"{SHAPES[shape]} {format_}: a token",
        "decode",
        {"tokens": CONTEXT, "dtype": "float32"},
        CHROMIUM,
        threads,
        (TRANSFORMERS,),
        (reads(READ_SHARE), at_most_times(1 / 1.5, TRANSFORMERS)),
        tolerance=TOLERANCES.get(format_, TOLERANCE),
        judge=JUDGE,
        peer_tolerance=PEER_TOLERANCES[format_],
    )


def embedding(threads: int) -> Case:
    """32 sentences by an encoder of MiniLM's shape."""
    sizes = {"sentences": SENTENCES, "tokens": SENTENCE}
    goals = (at_most_times(1 / 1.2, ONNX),)
    return Case(f"MiniLM F32: {SENTENCES} sentences of {SENTENCE} tokens", "embed", sizes, CHROMIUM, threads,
                (ONNX,), goals)  # fmt: skip


def run_everywhere(quick: bool, host: str | None = None) -> Iterator[Result]:
    """The rows of both hosts, or of one."""
    if host in (None, CPYTHON):
        yield from models.run(quick)
    if host in (None, CHROMIUM):
        yield from run(quick)


def run(quick: bool) -> Iterator[Result]:
    """Every row in the page."""
    threads = THREADS[:1] if quick else THREADS
    with Contest("models", quick, QUICK if quick else SAMPLING) as contest:
        for shape in SHAPES:
            for format_ in FORMATS:
                for count in threads:
                    yield _decoding(contest, decoding(shape, format_, count), shape, format_)
        for count in threads:
            try:
                sizes = {**embedding(count).sizes, "path": str(encoder_folder())}
                yield contest.measure(replace(embedding(count), sizes=sizes))
            except Unavailable as reason:
                yield models.unavailable(embedding(count), reason)
        for shape in SHAPES:
            for format_ in FORMATS:
                yield first_token(contest, shape, format_, 1 if quick else FIRST_ROUNDS)
        for format_ in LONG_FORMATS:
            for context in CONTEXTS:
                for count in threads:
                    yield writing(contest, format_, context, count, 1 if quick else FIRST_ROUNDS)


def _decoding(contest: Contest, case: Case, shape: str, format_: str) -> Result:
    """A case with its file, and the read of as many bytes as a token reads."""
    try:
        path = model_file(shape, format_)
        limit = Limit(READ, "polygrad", case.threads, "read", {"bytes": path.stat().st_size})
        return contest.measure(replace(case, sizes={**case.sizes, "path": str(path)}, limits=(limit,)))
    except Unavailable as reason:
        return models.unavailable(case, reason)


def first_token(contest: Contest, shape: str, format_: str, rounds: int) -> Result:
    """From the file's address to the first token, in pages that have done nothing with the library yet.

    Each library and its runtime (Pyodide, onnxruntime-web's WebAssembly) are loaded before the clock starts.
    """
    found, skipped = _in_fresh_pages(
        contest, ("polygrad", TRANSFORMERS), 1, "first-token", shape, format_, {}, rounds
    )
    found = {library: [seconds * 1e3 for seconds in values] for library, values in found.items()}
    medians = {library: median(values) for library, values in found.items()}
    value = medians.pop("polygrad", None)
    met = value is not None and value <= medians.get(TRANSFORMERS, math.inf)
    return Result("models", f"{SHAPES[shape]} {format_}: first token", CHROMIUM, DEVICES[CHROMIUM], value,
                  "ms", "lower", f"≤ {TRANSFORMERS}'s time", met, 1, peers=medians,
                  skipped=skipped)  # fmt: skip


def writing(contest: Contest, format_: str, context: int, threads: int, rounds: int) -> Result:
    """A token of an answer after so many tokens: the mean of the next 31, as a program gets them."""
    sizes = {"context": context, "count": WRITTEN}
    libraries = ("polygrad", TRANSFORMERS, WLLAMA)
    found, skipped = _in_fresh_pages(contest, libraries, threads, "write", LONG, format_, sizes, rounds)
    best = {library: min(values) for library, values in found.items()}
    value = best.pop("polygrad", None)
    met = value is not None and value * 1.5 <= min(best.values(), default=math.inf)
    case = f"{LONG_NAME} {format_}: writing after {context}"
    return Result("models", case, CHROMIUM, DEVICES[CHROMIUM], value, "ms", "lower",
                  "≤ 1/1.5 of the best peer's time", met, threads, peers=best, skipped=skipped)  # fmt: skip


def _in_fresh_pages(
    contest: Contest,
    libraries: tuple[str, ...],
    threads: int,
    kind: str,
    shape: str,
    format_: str,
    sizes: dict[str, int],
    rounds: int,
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Each library's times, in turn, each time in a page of its own; and why others have none.

    A page answers with a time and a token. Of float32, all have to write the same.
    """
    found: dict[str, list[float]] = {}
    tokens: dict[str, object] = {}
    skipped: dict[str, str] = {}
    for _ in range(rounds):
        for library in libraries:
            if library in skipped:
                continue
            try:
                path = {"path": str(model_file(shape, format_))}
                value, token = contest.in_fresh_page(library, threads, kind, sizes | path)
            except Unavailable as reason:
                skipped[library] = str(reason)
                continue
            found.setdefault(library, []).append(value)
            tokens[library] = token
    if format_ == "F32" and len(set(tokens.values())) > 1:  # nobody knows who is wrong: no figures
        skipped |= dict.fromkeys(tokens, f"expected the same token of all, got {tokens}")
        found.clear()
    return found, skipped
