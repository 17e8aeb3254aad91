"""Text, on the host: no Tensor holds it."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.helpers import prod
from polygrad.onnx.op_table import op
from polygrad.onnx.values import Constant, Strings, Value, describe, numbers_of, shape_of
from polygrad.tensor.tensor import Tensor
from polygrad.uop.shapes import broadcast_shape


def _text(x: Value) -> Strings:
    if not isinstance(x, Strings):
        raise OnnxError(f"expected strings, got {describe(x)}")
    return x


def pairs_of_texts(a: Value, b: Value) -> tuple[tuple[int, ...], list[tuple[str, str]]]:
    """Two operands of text, broadcast: the shape, and pairs of their elements."""
    x, y = _text(a), _text(b)
    shape = tuple(int(n) for n in broadcast_shape((x.shape, y.shape)))
    places = list(itertools.product(*map(range, shape)))
    return shape, [(_at(x, place), _at(y, place)) for place in places]


def _at(x: Strings, place: Sequence[int]) -> str:
    indices = place[len(place) - len(x.shape) :]
    index = 0
    for i, n in zip(indices, x.shape):
        index = index * n + (i if n > 1 else 0)
    return x.texts[index]


@op("StringConcat", 20)
def string_concat(a: Value, b: Value) -> Strings:
    shape, pairs = pairs_of_texts(a, b)
    return Strings(shape, [x + y for x, y in pairs])


@op("RegexFullMatch", 20)
def regex_full_match(x: Value, *, pattern: str) -> Constant:
    """Uses Python's regular expressions, whose syntax includes RE2's."""
    texts = _text(x)
    try:
        expression = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as e:
        raise OnnxError(f"pattern {pattern[:80]!r}: {e}") from None
    return Constant(
        dtypes.bool, texts.shape, [expression.fullmatch(text) is not None for text in texts.texts]
    )


@op("StringSplit", 20)
def string_split(x: Value, *, delimiter: str = "", maxsplit: int | None = None) -> tuple[Strings, Constant]:
    texts = _text(x)
    rows = [text.split(delimiter or None, -1 if maxsplit is None else maxsplit) for text in texts.texts]
    max_parts = max(map(len, rows), default=0)
    padded = [part for row in rows for part in row + [""] * (max_parts - len(row))]
    return Strings((*texts.shape, max_parts), padded), Constant(
        dtypes.int64, texts.shape, list(map(len, rows))
    )


@op("StringNormalizer", 10)
def string_normalizer(
    x: Value,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "en_US",
    stopwords: list[str] | None = None,
) -> Strings:
    """Without accents, stop words and empty elements, in one case."""
    texts = _text(x)
    changes: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
    change = changes.get(case_change_action)
    if change is None:
        raise OnnxError(f"expected case_change_action NONE, LOWER or UPPER, got {case_change_action!r}")
    plain = [
        "".join(c for c in unicodedata.normalize("NFKD", t) if not unicodedata.combining(c))
        for t in texts.texts
    ]
    if is_case_sensitive:
        stops = set(stopwords or ())
        out = [change(_without(t, stops)) for t in plain]
    else:
        stops = {change(w) for w in stopwords or ()}
        out = [_without(change(t), stops) for t in plain]
    if len(texts.shape) == 2 and texts.shape[0] != 1:
        return Strings(texts.shape, out)
    kept = [t for t in out if t] or [""]
    return Strings((1, len(kept)) if len(texts.shape) == 2 else (len(kept),), kept)


def _without(text: str, stops: set[str]) -> str:
    return " ".join(word for word in text.split(" ") if word not in stops)


_MOST_COLUMNS = 1 << 20  # of TfIdfVectorizer


@op("TfIdfVectorizer", 9)
def tf_idf_vectorizer(
    x: Value,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: list[int],
    ngram_indexes: list[int],
    pool_int64s: list[int] | None = None,
    pool_strings: list[str] | None = None,
    weights: list[float] | None = None,
    device: str | None,
) -> Tensor:
    """The counts of a pool's n-grams in each row, with up to `max_skip_count` elements between the elements
    of an n-gram."""
    pool: list[Any] = list(pool_int64s or pool_strings or [])
    grams: dict[tuple[Any, ...], int] = {}
    ends = [*ngram_counts[1:], len(pool)]
    if not all(0 <= start <= end <= len(pool) for start, end in zip(ngram_counts, ends)):
        raise OnnxError(f"expected ngram_counts that ascend from 0 to {len(pool)}, got {ngram_counts}")
    for n, (start, end) in enumerate(zip(ngram_counts, ends), 1):
        for at in range(start, end - n + 1, n):
            grams[tuple(pool[at : at + n])] = ngram_indexes[len(grams)]
    shape = shape_of(x)
    elements = x.texts if isinstance(x, Strings) else numbers_of(x)
    columns = shape[-1] if shape else 1
    size, rows = max(ngram_indexes) + 1, []
    if min(ngram_indexes) < 0 or size > _MOST_COLUMNS:
        raise OnnxError(f"expected ngram_indexes from 0 to {_MOST_COLUMNS - 1}, got up to {size - 1}")
    lengths = range(max(min_gram_length, 1), min(max_gram_length, len(ngram_counts)) + 1)
    for start in range(0, max(prod(shape), 1), max(columns, 1)):
        row = elements[start : start + columns]
        counts = [0.0] * size
        for n in lengths:
            for skip in range(1, (min(max_skip_count + 1, len(row)) if n > 1 else 1) + 1):
                for at in range(len(row) - skip * (n - 1)):
                    column = grams.get(tuple(row[at + skip * i] for i in range(n)))
                    if column is not None:
                        counts[column] += 1.0
        rows.append(counts)
    factors = _by_index(weights, ngram_indexes, size)
    if mode == "IDF":
        rows = [[f * (c > 0) for c, f in zip(counts, factors)] for counts in rows]
    elif mode == "TFIDF":
        rows = [[f * c for c, f in zip(counts, factors)] for counts in rows]
    elif mode != "TF":
        raise OnnxError(f"expected mode TF, IDF or TFIDF, got {mode!r}")
    return Tensor(rows if len(shape) > 1 else rows[0], device, dtypes.float32)


def _by_index(weights: list[float] | None, indexes: list[int], size: int) -> list[float]:
    out = [1.0] * size
    for weight, index in zip(weights or (), indexes):
        out[index] = weight
    return out
