"""Sentencepiece models made by hand of trained tokenizers, and the algorithm of its BPE in a few lines."""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from typing import Any

from polygrad.hf.sentencepiece import BYTE, CONTROL, NORMAL, UNKNOWN, VocabularyPiece


def _field(number: int, payload: bytes) -> bytes:
    length, out = len(payload), b""
    while length > 127:
        out, length = out + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + out + bytes([length]) + payload


def _integer(number: int, value: int) -> bytes:
    tag = number << 3
    out = bytes([tag & 127 | 128, tag >> 7]) if tag > 127 else bytes([tag])
    return out + bytes([value])


def model_file(
    pieces: list[VocabularyPiece],
    model: int,
    unk: int,
    bos: int,
    eos: int,
    prefix: bool = True,
    table: bytes = b"",
) -> bytes:
    """A ModelProto, written by hand."""
    out = b""
    for piece in pieces:
        score = bytes([2 << 3 | 5]) + struct.pack("<f", piece.score)
        out += _field(1, _field(1, piece.text.encode()) + score + _integer(3, piece.kind))
    trainer = _integer(3, model) + _integer(40, unk) + _integer(41, bos) + _integer(42, eos)
    return (
        out + _field(2, trainer) + _field(3, (_field(2, table) if table else b"") + _integer(3, int(prefix)))
    )


def pieces_of_unigram(judge: Any) -> list[VocabularyPiece]:
    vocabulary = json.loads(judge.backend_tokenizer.to_str())["model"]["vocab"]
    kinds = {"<unk>": UNKNOWN, "</s>": CONTROL, "<pad>": CONTROL, "<s>": CONTROL}
    return [VocabularyPiece(text, score, kinds.get(text, NORMAL)) for text, score in vocabulary]


def pieces_of_bpe(judge: Any) -> list[VocabularyPiece]:
    """The pieces of a trained BPE with scores in the order of its merges."""
    model = json.loads(judge.backend_tokenizer.to_str())["model"]
    scores = {"".join(pair): -float(i) for i, pair in enumerate(model["merges"])}
    out = []
    for text in sorted(model["vocab"], key=model["vocab"].__getitem__):
        kind = BYTE if text.startswith("<0x") else UNKNOWN if text == "<unk>" else NORMAL
        kind = CONTROL if text in ("<s>", "</s>") else kind
        out.append(VocabularyPiece(text, scores.get(text, -1e4 if kind == NORMAL else 0.0), kind))
    return out


def sentencepiece_bpe(text: str, pieces: list[VocabularyPiece], prefix: str = "▁") -> list[int]:
    """Sentencepiece's algorithm as it is defined: merge the neighbours whose joined piece has the best score,
    the leftmost of equals, until there are none. Characters that are no piece are their bytes."""
    ids = {piece.text: i for i, piece in enumerate(pieces)}
    scores = {piece.text: piece.score for piece in pieces if piece.kind == NORMAL}
    parts = list(prefix + text.replace(" ", "▁")) if text else []
    while True:
        pairs = [(-scores[a + b], i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in scores]
        if not pairs:
            break
        i = min(pairs)[1]
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    out = []
    for part in parts:
        out += [ids[part]] if part in scores else [ids[f"<0x{byte:02X}>"] for byte in part.encode()]
    return out
