"""Files that run a checkpoint's model without its Python: what generates text, and what reads texts.

`runtime/bundle.py` has the format, `generation/exporting.py` the Programs that generate. A text's reader
has a Program `read16`, `read32`, ... for each length: the inputs `ids` and `mask`, int32 (1, length), and
the output `values`, float32 (1, n), a text's vector or the probabilities of its labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from polygrad.capture.c_options import COptions, is_c_file
from polygrad.capture.capture import capture
from polygrad.capture.save import SavedStep, Steps, save_steps
from polygrad.engine.devices import kind_of
from polygrad.generation.engine import chunk_lengths
from polygrad.generation.exporting import capture_steps
from polygrad.hf.prompts import Prompts
from polygrad.hf.tokenizer import Tokenizer
from polygrad.hf.tokenizer_export import FILE, tokenizer_file
from polygrad.models.cache import device_of
from polygrad.models.causal_lm import CausalLM
from polygrad.runtime.bundle import TEXT_GENERATION
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.tensor import Tensor

LARGEST_CAPACITY = 2048  # tokens, unless more are asked for
_PORTABLE = ("WASM", "WEBGPU")  # devices that JavaScript has


def write_language_model(
    path: Any,
    module: CausalLM,
    weights: dict[str, Tensor],
    capacity: int,
    cache: DTypeLike,
    prompts: Prompts,
    notices: Mapping[str, bytes],
    c: COptions | None = None,
) -> None:
    """Write the file of a model that generates. `weights`: of the module, by name. `cache`: the dtype of keys
    and values. `notices`: files that say whose it is. `c`: of a file of C, which has weights alone."""
    capacity = capacity or min(module.max_length, LARGEST_CAPACITY)
    files = {} if is_c_file(path) else {**_files(prompts.tokenizer, module), **notices}
    steps = capture_steps(module, capacity, cache, weights)
    settings = {
        "capacity": capacity,
        "vocabulary": module.vocabulary,
        "chunks": chunk_lengths(capacity),
        "stop_tokens": list(prompts.stop_tokens),
        "max_new_tokens": prompts.max_new_tokens,
        "sampling": dict(prompts.sampling),
    }
    save_steps(steps, path, TEXT_GENERATION, settings, files, c)


@dataclass(frozen=True)
class ReaderSettings:
    """`lengths`: the numbers of tokens that Programs read, the largest last. `vocabulary`: how many tokens
    there are. `pad`: the token of padding. `labels`: their names, or none."""

    lengths: Sequence[int]
    vocabulary: int
    pad: int
    labels: Sequence[str] = ()


def write_reader(
    path: Any,
    kind: str,
    module: Any,
    weights: dict[str, Tensor],
    outputs: Callable[[Tensor, Tensor], Tensor],
    settings: ReaderSettings,
    tokenizer: Tokenizer | None,
    notices: Mapping[str, bytes],
    c: COptions | None = None,
) -> None:
    """Write the file of a model that reads texts. `outputs`: gives a text's values for ids and a mask.
    `notices`: files that say whose it is. `c`: of a file of C, which has weights alone."""
    files = {} if is_c_file(path) else {**_files(tokenizer, module), **notices}
    first, *others = weights.values()
    first.realize(*others)
    steps = {f"read{n}": _read(outputs, n, device_of(module)) for n in settings.lengths}
    save_steps(Steps(steps, weights), path, kind, asdict(settings), files, c)


def _read(outputs: Callable[[Tensor, Tensor], Tensor], length: int, device: str | None) -> SavedStep:
    ids, mask = (Tensor([[1] * length], device, "int32") for _ in range(2))
    with Tensor.no_grad():
        step = capture(lambda: outputs(ids, mask), [ids, mask], ["ids", "mask"])
    return SavedStep(step, ["ids", "mask"], [("values", step.result)])


def _files(tokenizer: Tokenizer | None, module: Any) -> dict[str, bytes]:
    if tokenizer is None:
        return {}
    device = device_of(module)
    return {FILE: tokenizer_file(tokenizer, device is not None and kind_of(device) in _PORTABLE)}
