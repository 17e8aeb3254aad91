"""The programs of language models, which each library runs on the same file.

- `decode` path, tokens, dtype: a decoder has seen all tokens but the last; a step sees the last, and gives
  the scores of the token that follows. Each step sees the same place again.
- `prefill` path, tokens, dtype: a step sees all tokens, from the first on.
- `embed` path, sentences, tokens: a vector of length 1 for each sentence, the mean of its tokens'.

The path is a GGUF file, or of `embed` a folder. `dtype` is that of who unpacks weights in few bits; `onnx`:
the folder of the same model for onnxruntime, where it has one.
"""

from __future__ import annotations

KINDS = ("decode", "prefill", "embed")


def tokens_of(count: int) -> list[int]:
    """Tokens of any model that has at least 512."""
    return [(i * 7919 + 13) % 509 for i in range(count)]


def sentences_of(sentences: int, count: int) -> list[list[int]]:
    """Sentences of `count` tokens each, no two alike."""
    return [[(i * 7919 + 31 * j + 13) % 509 for i in range(count)] for j in range(sentences)]
