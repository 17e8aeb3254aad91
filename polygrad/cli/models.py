"""Common parts of the commands that run models: options, loading, and measurement of speed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from polygrad.engine.devices import Device
from polygrad.errors import ArgumentError
from polygrad.generation.requests import Piece
from polygrad.hf.instances import HFInstance
from polygrad.hf.load import load_hf

_M = TypeVar("_M", bound=HFInstance)
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty",
             "frequency_penalty", "seed")  # fmt: skip


def add_model_arguments(
    parser: argparse.ArgumentParser, device: str = "the default one of this host"
) -> None:
    """Add the options that select and load a model. `device`: the one that is used by default, in words."""
    parser.add_argument(
        "model",
        help="a folder of HuggingFace's kind, a GGUF file, or the name of a repository (owner/name)",
    )
    group = parser.add_argument_group("how the model is loaded")
    group.add_argument("--dtype", help="of the weights: float32, float16, bfloat16 (that of the file)")
    group.add_argument("--device", help=f"the device ({device})")
    group.add_argument(
        "--quantize", metavar="KIND", help="pack the weights in few bits: int8, int4, q4_0, ..."
    )
    group.add_argument(
        "--max-seq-len",
        type=int,
        default=0,
        metavar="N",
        help="tokens of prompt and answer, which decide the cache's size (as many as the model takes)",
    )


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of sampling and of the end of an answer."""
    group = parser.add_argument_group("how the answer is drawn (by default as the model's files say)")
    number: Any = {"type": float, "metavar": "X"}
    group.add_argument("--max-new-tokens", type=int, metavar="N", help="the longest answer (128)")
    group.add_argument("--temperature", **number, help="0 takes the likeliest token each time")
    group.add_argument("--top-k", type=int, metavar="N", help="draw from the N likeliest tokens")
    group.add_argument("--top-p", **number, help="draw from the likeliest tokens that have this probability")
    group.add_argument("--min-p", **number, help="leave out tokens below this part of the likeliest one's")
    group.add_argument(
        "--repetition-penalty", **number, help="more than 1 makes tokens that came less likely"
    )
    group.add_argument("--presence-penalty", **number, help="taken off the scores of tokens that were drawn")
    group.add_argument("--frequency-penalty", **number, help="the same, once for each time")
    group.add_argument("--seed", type=int, metavar="N", help="of the draws: the same seed, the same answer")
    group.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="TEXT",
        help="ends the answer; may be given several times",
    )


def sampling_options(options: argparse.Namespace) -> dict[str, Any]:
    """The given sampling options, as `LanguageModel.request` takes them."""
    values = {name: getattr(options, name) for name in (*_SAMPLING, "max_new_tokens")}
    return {"stop": options.stop} | {name: value for name, value in values.items() if value is not None}


def load_model(options: argparse.Namespace, kind: type[_M], what: str, max_batch: int = 1) -> _M:
    """The model that the options name, which has to be of a kind: `what` it does. Raises ArgumentError,
    ModelError."""
    if options.device is not None:
        Device.DEFAULT = options.device.upper()  # caches and inputs are there, too
    loaded = load_hf(
        options.model,
        max_batch=max_batch,
        max_seq_len=options.max_seq_len,
        dtype=options.dtype,
        quantize=options.quantize,
    )
    if not isinstance(loaded, kind):
        raise ArgumentError(f"{options.model}: {loaded.architecture.name} is no model that {what}")
    return loaded


def lines_of(texts: list[str], file: str | None) -> list[str]:
    """The texts of the command line, and the lines of a file ("-": of standard input) that are not empty.

    Raises ArgumentError when there are none.
    """
    lines = list(texts)
    if file == "-":
        lines += [line for line in sys.stdin.read().splitlines() if line.strip()]
    elif file is not None:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as e:
            raise ArgumentError(f"--file: {file}: {e}") from e
        lines += [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise ArgumentError("texts: expected at least one, as an argument or by --file")
    return lines


class Speed:
    """Measures the speed of an answer. The time starts when this object is made."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self._first: float | None = None
        self._last = self._begin
        self.tokens = 0

    def watch(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """The pieces, counted as they go by."""
        for piece in pieces:
            self._last = time.perf_counter()
            if self._first is None:
                self._first = self._last
            self.tokens += len(piece.tokens)
            yield piece

    def numbers(self) -> dict[str, float | int | None]:
        """Seconds to the first token, and tokens a second from then on; None where there are too few."""
        first = None if self._first is None else round(self._first - self._begin, 4)
        elapsed = self._last - (self._first or self._last)
        rate = round((self.tokens - 1) / elapsed, 2) if self.tokens > 1 and elapsed > 0 else None
        return {"tokens": self.tokens, "first_token_seconds": first, "tokens_per_second": rate}

    def __str__(self) -> str:
        n = self.numbers()
        first = (
            "" if n["first_token_seconds"] is None else f", the first after {n['first_token_seconds']:.2f} s"
        )
        rate = "" if n["tokens_per_second"] is None else f", then {n['tokens_per_second']:.1f} tokens/s"
        return f"{self.tokens} tokens{first}{rate}"


def tell(text: str) -> None:
    """To standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def show(text: str) -> None:
    """To standard output, at once. Characters that it cannot show are replaced."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()
