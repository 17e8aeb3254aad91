"""Sentencepiece's vocabularies (`spiece.model`, `tokenizer.model`, GGUF's `llama` and `t5`) as
tokenizer.json.

The file is a message of protobuf (`sentencepiece_model.proto`): pieces with scores and kinds, the settings of
the trainer, and the normalization of text. A model of kind BPE merges the two neighbours whose joined piece
has the best score, which corresponds to a list of merges in the order of scores.
"""

from __future__ import annotations

import base64
import math
import struct
from dataclasses import dataclass
from typing import Any

from polygrad.errors import ModelError
from polygrad.nn.wire import FIXED32, LENGTH, VARINT, FileFormat, Span, expect_kind, signed

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
UNIGRAM, BPE = 1, 2
SPACE = "▁"
_MODELS = {UNIGRAM: "unigram", BPE: "bpe", 3: "word", 4: "char"}


@dataclass(frozen=True, slots=True)
class VocabularyPiece:
    text: str
    score: float
    kind: int = NORMAL


@dataclass(frozen=True, slots=True)
class SentencePieceModel:
    """`model`: UNIGRAM or BPE. Ids are -1 where there is no such piece."""

    pieces: tuple[VocabularyPiece, ...]
    model: int = UNIGRAM
    unk_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    pad_id: int = -1
    adds_prefix: bool = True
    removes_spaces: bool = True
    charsmap: bytes = b""


def read_sentencepiece(raw: bytes, file: str) -> SentencePieceModel:
    """The message in `raw`. Raises ModelError that names `file` and the entry."""
    format = FileFormat(file, ModelError)
    data = memoryview(raw).cast("B")
    pieces: list[VocabularyPiece] = []
    trainer: dict[int, Any] = {}
    normalizer: dict[int, Any] = {}
    for number, kind, value in Span(data, 0, len(data), format).fields():
        if number not in (1, 2, 3):
            continue
        expect_kind(kind, LENGTH, f"field {number}", value, format)
        assert isinstance(value, Span)
        if number == 1:
            pieces.append(_piece(value, len(pieces), file))
        else:
            (trainer if number == 2 else normalizer).update({n: v for n, _, v in value.fields()})
    if not pieces:
        raise ModelError(f"{file}: expected a sentencepiece model, got no pieces")

    def integer(fields: dict[int, Any], number: int, default: int) -> int:
        value = fields.get(number)
        if value is not None and not isinstance(value, int):
            raise ModelError(f"{file}: field {number}: expected a number")
        return default if value is None else signed(value)

    model = integer(trainer, 3, UNIGRAM)
    if model not in (UNIGRAM, BPE):
        raise ModelError(f"{file}: model_type: expected unigram or bpe, got {_MODELS.get(model, model)}")
    if integer(trainer, 24, 0):
        raise ModelError(f"{file}: treat_whitespace_as_suffix: expected false, got true, which is not read")
    charsmap = normalizer.get(2, b"")
    return SentencePieceModel(
        tuple(pieces),
        model,
        integer(trainer, 40, 0),
        integer(trainer, 41, 1),
        integer(trainer, 42, 2),
        integer(trainer, 43, -1),
        bool(integer(normalizer, 3, 1)),
        bool(integer(normalizer, 4, 1)),
        bytes(charsmap.bytes) if isinstance(charsmap, Span) else b"",
    )


def _piece(span: Span, index: int, file: str) -> VocabularyPiece:
    text, score, piece_kind = "", 0.0, NORMAL
    for number, kind, value in span.fields():
        if number == 1 and isinstance(value, Span):
            text = value.text(f"piece {index}")
        elif number == 2:
            expect_kind(kind, FIXED32, f"the score of piece {index}", value, span.format)
            assert isinstance(value, Span)
            score = struct.unpack("<f", value.bytes)[0]
        elif number == 3:
            expect_kind(kind, VARINT, f"the kind of piece {index}", value, span.format)
            piece_kind = int(value)  # type: ignore[arg-type]
    return VocabularyPiece(text, score, piece_kind)


def check_pieces(model: SentencePieceModel, file: str) -> None:
    """Raises ModelError for pieces that contradict each other."""
    first: dict[str, int] = {}
    for i, piece in enumerate(model.pieces):
        if not piece.text or piece.kind not in range(NORMAL, BYTE + 1) or not math.isfinite(piece.score):
            raise ModelError(
                f"{file}: piece {i}: expected text, a finite score and a kind from 1 to 6, got {piece}"
            )
        if (other := first.setdefault(piece.text, i)) != i:
            raise ModelError(f"{file}: pieces {other} and {i} are both {piece.text[:80]!r}")
    if not 0 <= model.unk_id < len(model.pieces):
        raise ModelError(f"{file}: unk_id: expected an id below {len(model.pieces)}, got {model.unk_id}")
    for name in ("bos_id", "eos_id", "pad_id"):
        if not -1 <= getattr(model, name) < len(model.pieces):
            raise ModelError(
                f"{file}: {name}: expected an id below {len(model.pieces)}, got {getattr(model, name)}"
            )


def convert_sentencepiece(model: SentencePieceModel, file: str) -> dict[str, Any]:
    """The same tokenizer in the form of tokenizer.json, without tokens at the ends of texts. Raises
    ModelError.
    """
    check_pieces(model, file)
    pieces = model.pieces
    has_bytes = any(piece.kind == BYTE for piece in pieces)
    unknown_token = pieces[model.unk_id].text
    if model.model == BPE:
        vocabulary = {piece.text: i for i, piece in enumerate(pieces)}
        inner: dict[str, Any] = {
            "type": "BPE",
            "dropout": None,
            "unk_token": unknown_token,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": has_bytes,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": merges_by_score(pieces),
        }
    else:
        inner = {
            "type": "Unigram",
            "unk_id": model.unk_id,
            "vocab": [[piece.text, piece.score] for piece in pieces],
            "byte_fallback": has_bytes,
        }
    return {
        "version": "1.0",
        "added_tokens": _added_tokens(model),
        **(_pipeline_of_bpe(model) if model.model == BPE else _pipeline_of_unigram(model)),
        "post_processor": None,
        "model": inner,
    }


def _added_tokens(model: SentencePieceModel) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "content": piece.text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": piece.kind != USER_DEFINED,
        }
        for i, piece in enumerate(model.pieces)
        if piece.kind in (UNKNOWN, CONTROL, USER_DEFINED)
    ]


def _pipeline_of_bpe(model: SentencePieceModel) -> dict[str, Any]:
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    steps: list[dict[str, Any]] = []
    if model.charsmap:
        steps.append(_precompiled_normalizer(model.charsmap))
    if model.adds_prefix:
        steps.append({"type": "Prepend", "prepend": SPACE})
    back = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
    decoders = [back, {"type": "ByteFallback"}, {"type": "Fuse"}]
    if model.adds_prefix:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*steps, replace]},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
    }


def _pipeline_of_unigram(model: SentencePieceModel) -> dict[str, Any]:
    steps = [_precompiled_normalizer(model.charsmap)] if model.charsmap else []
    if model.removes_spaces:
        steps.append({"type": "Strip", "strip_left": False, "strip_right": True})
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": SPACE})
    scheme = "always" if model.adds_prefix else "never"
    metaspace = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": True}
    has_bytes = any(piece.kind == BYTE for piece in model.pieces)
    decoder = (
        {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, metaspace]} if has_bytes else metaspace
    )
    return {
        "normalizer": {"type": "Sequence", "normalizers": steps} if steps else None,
        "pre_tokenizer": metaspace,
        "decoder": decoder,
    }


def _precompiled_normalizer(charsmap: bytes) -> dict[str, Any]:
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode("ascii")}


def merges_by_score(pieces: tuple[VocabularyPiece, ...]) -> list[list[str]]:
    """The merges of a BPE model: each pair of pieces whose joined text is one, the best score first."""
    ids = {piece.text: i for i, piece in enumerate(pieces) if piece.kind in (NORMAL, USER_DEFINED, UNUSED)}
    merges: list[tuple[float, int, int, int]] = []
    for text, i in ids.items():
        for cut in range(1, len(text)):
            left, right = ids.get(text[:cut]), ids.get(text[cut:])
            if left is not None and right is not None:
                merges.append((-pieces[i].score, i, left, right))
    merges.sort()
    return [[pieces[left].text, pieces[right].text] for _, _, left, right in merges]
