"""Instances that tell how well texts and pictures match."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from polygrad.capture.jit import TinyJit
from polygrad.errors import ArgumentError, ModelError
from polygrad.hf.image_reader import ImageReader, stack_padded
from polygrad.tensor.tensor import Tensor

_SHORTEST = 16  # tokens; longer texts are padded to twice that, and so on
_LONGEST = 77  # tokens, where the model has no limit of its own


class ImageTextMatcher(ImageReader):
    """A model that has seen pictures with texts that describe them, as CLIP."""

    @property
    def max_tokens(self) -> int:
        """How many tokens a text may have; longer ones lose their ends."""
        return int(getattr(getattr(self.module, "text_model", self.module), "longest", _LONGEST))

    def match(self, images: Iterable[Any], texts: Sequence[str]) -> list[list[float]]:
        """For each picture the probability of each text, if one of them describes it; see `ImageReader` for
        what a picture is. Raises ArgumentError, ModelError, ShapeError."""
        pixels = self.pixels(images)
        if isinstance(texts, str) or not texts or not all(isinstance(text, str) for text in texts):
            raise ArgumentError(f"texts: expected a list of texts, got {texts!r:.80}")
        ids, mask = self._tokens(texts)
        x = stack_padded(pixels)
        program = self._programs.setdefault((tuple(x.shape), tuple(ids.shape)), TinyJit(self._outputs))
        with Tensor.no_grad():
            rows = program(x, ids, mask).tolist()
        return [_softmax(row[: len(texts)]) for row in rows[: len(pixels)]]

    def _tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Tokens and their mask, int32; the numbers of texts and of tokens are padded to powers of two."""
        if self.tokenizer is None:
            raise ModelError("texts: they need a tokenizer, and the model's folder has none")
        rows = self.tokenizer.encode_batch(texts, padding_side="right", max_length=self.max_tokens)
        length = _SHORTEST
        while length < len(rows.ids[0]):
            length *= 2
        length = min(length, self.max_tokens)
        more = (1 << (len(texts) - 1).bit_length()) - len(texts)
        filler = length - len(rows.ids[0])
        pad = self.tokenizer.pad_id or 0
        ids = [[*row, *[pad] * filler] for row in rows.ids + rows.ids[:1] * more]
        mask = [[*row, *[0] * filler] for row in rows.attention_mask + rows.attention_mask[:1] * more]
        return Tensor(ids, self.device, dtype="int32"), Tensor(mask, self.device, dtype="int32")

    def _outputs(self, pixels: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
        out = self.module.forward(input_ids=ids, pixel_values=pixels, attention_mask=mask)
        logits: Tensor = out["logits_per_image"]
        return logits.float().contiguous()


def _softmax(row: list[float]) -> list[float]:
    largest = max(row)
    weights = [math.exp(x - largest) for x in row]
    total = sum(weights)
    return [w / total for w in weights]
