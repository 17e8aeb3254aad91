"""`LanguageModel`: an exported model that generates text. `generation/exporting.py` has its Programs.

Prompts, sampling and the end of answers are the same code as those of `hf.LanguageModel`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Unpack

from polygrad.errors import ArgumentError
from polygrad.export.files import read_values
from polygrad.export.opening import LoadOptions, open_model
from polygrad.export.programs import Programs
from polygrad.generation.engine import chunks_of
from polygrad.generation.exporting import draw_name
from polygrad.generation.requests import Completion, NoText, Piece, Request, join_pieces
from polygrad.generation.sampling import Draw, Needs, Sampling
from polygrad.generation.scheduler import Scheduler
from polygrad.hf.prompts import Prompts
from polygrad.hf.tokenizer import Tokenizer
from polygrad.hf.tokenizer_export import FILE, read_tokenizer
from polygrad.models.fields import Fields
from polygrad.monitor import computing
from polygrad.runtime.bundle import TEXT_GENERATION, Bundle
from polygrad.tensor.tensor import Tensor


class LanguageModel:
    """An exported model that generates text, in memory. `load_language_model` makes it.

    `tokenizer`: the one in the file, or None. `capacity`: the most tokens of a prompt and its answer. The
    cache keeps the tokens of the last answer, so a prompt that begins with them costs what is new.
    """

    @computing
    def __init__(self, bundle: Bundle, values: memoryview, native: bool = False) -> None:
        settings = Fields(bundle.settings, "settings")
        programs = Programs(bundle.programs, native)
        programs.set_values(read_values(values), bundle.zeros)
        self.tokenizer: Tokenizer | None = (
            read_tokenizer(bundle.files[FILE]) if FILE in bundle.files else None
        )
        self._prompts = Prompts(
            self.tokenizer,
            settings.items("stop_tokens", int),
            settings.integer("max_new_tokens"),
            settings.section("sampling").values,
        )
        self._engine = _Engine(programs, settings)
        self._scheduler = Scheduler(self._engine, NoText if self.tokenizer is None else self.tokenizer.stream)
        self.capacity = self._engine.capacity

    def generate(self, prompt: Any, **options: Any) -> Completion:
        """The answer to a prompt: text, token ids, or a conversation, a list of {"role", "content"}.

        Options are those of `hf.LanguageModel.request` without `grammar` and `log_probabilities`. Raises
        ArgumentError, ModelError.
        """
        request = self._request(prompt, options)
        return join_pieces(list(self._run(request)), len(request.tokens))

    def stream(self, prompt: Any, **options: Any) -> Iterator[Piece]:
        """As `generate`, piece by piece. Leaving the loop ends the answer."""
        return self._run(self._request(prompt, options))

    def _request(self, prompt: Any, options: dict[str, Any]) -> Request:
        for name in ("grammar", "log_probabilities"):
            if options.get(name) is not None:
                raise ArgumentError(f"{name}: an exported model has none: use polygrad.hf.load_hf")
        return self._prompts.request(prompt, **options)

    def _run(self, request: Request) -> Iterator[Piece]:
        sequence = self._scheduler.submit(request)
        try:
            while not sequence.is_done:
                self._scheduler.step()
                while sequence.pieces:
                    yield sequence.pieces.popleft()
        finally:
            sequence.cancel()


class _Engine:
    """A `TokenEngine` of one slot over exported Programs."""

    slots = 1

    def __init__(self, programs: Programs, settings: Fields) -> None:
        self._programs = programs
        self.capacity, self.vocabulary = settings.integer("capacity"), settings.integer("vocabulary")
        self._lengths = settings.items("chunks", int)

    def allow(self, slot: int, bits: bytes | None) -> None:
        """All tokens are allowed."""

    def prefill(
        self, slot: int, tokens: Sequence[int], start: int, sampling: Sampling, needs: Needs
    ) -> Iterator[Draw | None]:
        chunks = chunks_of(len(tokens), start, self._lengths)
        for first, length in chunks[:-1]:
            self._fill(tokens, first, length)
            yield None
        self._set(sampling, tokens)
        self._fill(tokens, *chunks[-1])
        yield self._draw(len(tokens), needs, drawn=0)

    def decode(self, length: int, needs: Needs) -> Draw:
        self._run("decode", length=length)
        return self._draw(length, needs, drawn=1)

    def verify(self, slot: int, tokens: Sequence[int], guess: Sequence[int], needs: Needs) -> list[int]:
        raise ArgumentError("verify: exported models check no guesses")

    def can_verify(self, length: int) -> bool:
        return False

    def release(self, slot: int) -> None:
        """Nothing is written for a sequence that is not drawn."""

    @computing
    def _run(self, name: str, **variables: int) -> None:
        self._programs.run(name, variables)

    @computing
    def _fill(self, tokens: Sequence[int], first: int, length: int) -> None:
        chunk = tokens[first : first + length]
        raw = struct.pack(f"<{length}i", *chunk, *[0] * (length - len(chunk)))
        name = f"prefill{length}"
        self._programs.write_start(self._programs.buffer(name, "input", "tokens"), memoryview(raw))
        self._run(name, start=first, last=len(chunk) - 1)

    @computing
    def _set(self, sampling: Sampling, prompt: Sequence[int]) -> None:
        """Write the settings of an answer."""
        self._write("numbers", struct.pack("<7f", *sampling.numbers(self.vocabulary)))
        self._write("seeds", struct.pack("<Q", sampling.seed or 0))
        if not _is_penalized(sampling.needs):
            return
        seen, bias = bytearray(self.vocabulary), [0.0] * self.vocabulary
        for token in prompt:
            seen[token] = 1
        for token, value in sampling.logit_bias.items():
            bias[token] = max(value, -1e30)
        self._write("seen", bytes(seen))
        self._write("bias", struct.pack(f"<{self.vocabulary}f", *bias))
        self._write("counts", bytes(4 * self.vocabulary))

    def _write(self, name: str, raw: bytes) -> None:
        self._programs.write(f"sampling.{name}", memoryview(raw))

    @computing
    def _draw(self, position: int, needs: Needs, drawn: int) -> Draw:
        if _is_penalized(needs):
            self._run("penalize", drawn=drawn)
        self._run(draw_name(needs), position=position)
        (token,) = struct.unpack("<i", self._programs.value("token").read())
        return Draw(Tensor([token], dtype="int32"))


def _is_penalized(needs: Needs) -> bool:
    return needs.bias or needs.repetition or needs.counts


def load_language_model(source: Any, **options: Unpack[LoadOptions]) -> LanguageModel:
    """The exported model that generates text in the file `source`: a path, bytes, or a buffer. Options are
    the other arguments of `load`.

    Raises as `load` does, and ModelError when the tokenizer is damaged.
    """
    return LanguageModel(*open_model(source, TEXT_GENERATION, **options))
