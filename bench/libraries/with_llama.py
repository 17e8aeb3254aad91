"""llama.cpp on a GGUF file: the next token, a prompt; and files in other formats.

`python -m bench.libraries.with_llama SOURCE TARGET FORMAT` makes a file whose weights are all of one format,
as llama.cpp's own tool does with `--pure`; rows that have no whole number of blocks get the format that it
chooses for them. Runs in an environment with llama-cpp-python, see `bench.hosts.llama_python`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from bench.libraries.inputs import numbers
from bench.libraries.language import tokens_of
from bench.libraries.shapes import Program

FORMATS = {
    "BF16": llama_cpp.LLAMA_FTYPE_MOSTLY_BF16,
    "Q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
    "Q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0,
    "Q4_K": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_S,
}


class Session:
    """A model and a context for one sequence of `capacity` tokens."""

    def __init__(self, path: str, capacity: int) -> None:
        threads = int(os.environ["OMP_NUM_THREADS"])
        self._model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params()
        )
        if not self._model:
            raise ValueError(f"{path}: llama.cpp does not load it")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = capacity
        params.n_threads = params.n_threads_batch = threads
        self._context = llama_cpp.llama_init_from_model(self._model, params)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))

    def __del__(self) -> None:
        if getattr(self, "_context", None):
            llama_cpp.llama_free(self._context)
        if getattr(self, "_model", None):
            llama_cpp.llama_model_free(self._model)

    def forget(self, start: int) -> None:
        """The tokens from position `start` on."""
        llama_cpp.llama_memory_seq_rm(self._memory, 0, start, -1)

    def extend(self, tokens: list[int]) -> None:
        """The model sees these tokens behind those that it has seen."""
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        code = llama_cpp.llama_decode(self._context, llama_cpp.llama_batch_get_one(array, len(tokens)))
        if code:
            raise ValueError(f"llama_decode: {code}")

    def logits(self) -> np.ndarray:
        """Of what follows the last token, float32 (vocabulary,)."""
        found = llama_cpp.llama_get_logits_ith(self._context, -1)
        return np.ctypeslib.as_array(found, (self._vocabulary,))


def make(kind: str, sizes: dict[str, Any]) -> Program:
    """See `bench.libraries.language`."""
    llama_cpp.llama_log_set(_quiet, None)
    count = sizes["tokens"]
    tokens = tokens_of(count)
    session = Session(sizes["path"], count + 1)
    if kind == "decode":
        *prompt, last = tokens
        if prompt:
            session.extend(prompt)

        def step() -> int:
            session.forget(count - 1)
            session.extend([last])
            return int(session.logits().argmax())

    elif kind == "prefill":

        def step() -> int:
            session.forget(0)
            session.extend(tokens)
            return int(session.logits().argmax())

    else:
        raise ValueError(f"llama.cpp has no program {kind}")

    def check() -> list[float]:
        step()
        return numbers(session.logits())

    return Program(step, check, threads=int(os.environ["OMP_NUM_THREADS"]))


@llama_cpp.llama_log_callback
def _quiet(level: int, text: bytes, data: Any) -> None:
    del level, text, data


def convert(source: Path, target: Path, format_: str) -> None:
    """The whole file, at once."""
    unfinished = target.with_suffix(".unfinished")
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype, params.pure = FORMATS[format_], True
    code = llama_cpp.llama_model_quantize(os.fsencode(source), os.fsencode(unfinished), params)
    if code:
        raise ValueError(f"{source}: llama_model_quantize: {code}")
    unfinished.replace(target)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
