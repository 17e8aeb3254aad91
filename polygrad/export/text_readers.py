"""`TextEncoder` and `TextClassifier`: exported models that read texts.

`hf/exporting.py` has their Programs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, Unpack

from polygrad.errors import ArgumentError, ModelError
from polygrad.export.files import read_values
from polygrad.export.opening import LoadOptions, open_model
from polygrad.export.programs import Programs
from polygrad.hf.tokenizer import Tokenizer
from polygrad.hf.tokenizer_export import FILE, read_tokenizer
from polygrad.models.fields import Fields
from polygrad.monitor import computing
from polygrad.runtime.bundle import FEATURE_EXTRACTION, TEXT_CLASSIFICATION, Bundle
from polygrad.tensor.tensor import Tensor


class _TextReader:
    """Reads one text after the other, each with the Program for the next greater number of tokens."""

    @computing
    def __init__(self, bundle: Bundle, values: memoryview, native: bool = False) -> None:
        settings = Fields(bundle.settings, "settings")
        self._programs = Programs(bundle.programs, native)
        self._programs.set_values(read_values(values), bundle.zeros)
        self.tokenizer: Tokenizer | None = (
            read_tokenizer(bundle.files[FILE]) if FILE in bundle.files else None
        )
        self._lengths = settings.items("lengths", int)
        self._vocabulary, self._pad = settings.integer("vocabulary"), settings.integer("pad", least=0)
        self.labels: list[str] = settings.items("labels", str)
        self.max_tokens = self._lengths[-1]

    def _read(self, texts: Iterable[str | Sequence[int]]) -> Tensor:
        """The values of texts, float32 (n, ...)."""
        if isinstance(texts, (str, bytes)):
            raise ArgumentError("texts: expected a list of texts, got one")
        rows = [self._row(text, i) for i, text in enumerate(texts)]
        if not rows:
            raise ArgumentError("texts: expected at least one, got none")
        raw = b"".join(map(self._run, rows))
        return Tensor(raw, self._programs.device, "float32").reshape(len(rows), -1)

    def _row(self, text: str | Sequence[int], index: int) -> list[int]:
        if isinstance(text, str):
            if self.tokenizer is None:
                raise ModelError("texts: they need a tokenizer, and the file has none: pass token ids")
            row = self.tokenizer.encode_batch([text], max_length=self.max_tokens).ids[0]
        else:
            row = list(text)[: self.max_tokens]
        wrong = next((t for t in row if type(t) is not int or not 0 <= t < self._vocabulary), None)
        if wrong is not None or not row:
            got = "none" if wrong is None else f"{wrong!r:.80}"
            raise ArgumentError(f"texts[{index}]: expected ids of the {self._vocabulary} tokens, got {got}")
        return row

    @computing
    def _run(self, row: list[int]) -> bytes:
        length = next(n for n in self._lengths if n >= len(row))
        name, padding = f"read{length}", length - len(row)
        inputs = {"ids": [*row, *[self._pad] * padding], "mask": [1] * len(row) + [0] * padding}
        for key, numbers in inputs.items():
            raw = memoryview(struct.pack(f"<{length}i", *numbers))
            self._programs.write_start(self._programs.buffer(name, "input", key), raw)
        self._programs.run(name, {})
        return bytes(self._programs.buffer(name, "output", "values").read())


class TextEncoder(_TextReader):
    """An exported model that gives the vectors of texts. `load_text_encoder` makes it."""

    def embed(self, texts: Iterable[str | Sequence[int]]) -> Tensor:
        """A vector of each text, float32 (n, size), as `hf.TextEncoder.embed` gives it. Raises ArgumentError,
        ModelError."""
        return self._read(texts)


class TextClassifier(_TextReader):
    """An exported model that gives the labels of texts. `load_text_classifier` makes it."""

    def classify(self, texts: Iterable[str | Sequence[int]]) -> list[dict[str, float]]:
        """The probability of each label, for each text, as `hf.TextClassifier.classify` gives it. Raises
        ArgumentError, ModelError."""
        return [dict(zip(self.labels, row, strict=True)) for row in self._read(texts).tolist()]


def load_text_encoder(source: Any, **options: Unpack[LoadOptions]) -> TextEncoder:
    """The exported model that gives vectors of texts in the file `source`: a path, bytes, or a buffer.
    Options and errors are those of `load_language_model`."""
    return TextEncoder(*open_model(source, FEATURE_EXTRACTION, **options))


def load_text_classifier(source: Any, **options: Unpack[LoadOptions]) -> TextClassifier:
    """The exported model that gives labels of texts in the file `source`: a path, bytes, or a buffer.
    Options and errors are those of `load_language_model`."""
    return TextClassifier(*open_model(source, TEXT_CLASSIFICATION, **options))
