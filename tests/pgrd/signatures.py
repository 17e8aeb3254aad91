"""Signatures of `good/chain.pgrd`, and the verdict on each, which Python's reader and JavaScript's give.

    PYTHONPATH=.:tests python tests/pgrd/signatures.py

writes `signatures.json` anew: a public key, and cases of a signature and a verdict. `good` and `refused`
explain themselves; `whole` is good for readers that compare all of the file, and refused by those that read
the head in the comment, which the signature lacks.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pgrd.corpus import FOLDER
from polygrad.export.minisign import PublicKey, SecretKey

SIGNED, OTHER = "good/chain.pgrd", "good/captured.pgrd"
FILE = FOLDER / "signatures.json"


def key(seed: bytes, number: bytes) -> SecretKey:
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    return SecretKey(PublicKey(number, public), seed)


KEY = key(bytes(range(32)), b"corpus.1")


def signatures() -> dict[str, Any]:
    """What the file has."""
    data, other = (memoryview((FOLDER / name).read_bytes()) for name in (SIGNED, OTHER))
    head, other_head = (f"head:{x[:44].hex()}".encode() for x in (data, other))
    stranger, impostor = key(bytes(32), b"corpus.2"), key(bytes(32), KEY.public.number)
    good = KEY.sign(data, b"timestamp:1\tfile:chain.pgrd\thashed\t" + head).file()
    lines = good.split(b"\n")

    def with_line(number: int, line: bytes) -> bytes:
        return b"\n".join([*lines[:number], line, *lines[number + 1 :]])

    def with_byte(number: int, position: int, change: int = 1) -> bytes:
        """One changed byte of what a line has in base64."""
        raw = bytearray(base64.b64decode(lines[number]))
        raw[position] ^= change
        return with_line(number, base64.b64encode(raw))

    comments = {
        "good": [head, b"1.0 \xc3\xa9\xf0\x9f\x98\x80 " + head, other_head + b"\t" + head],
        "whole": [
            b"",
            b"timestamp:1\tfile:chain.pgrd\thashed",
            head + b" ",
            b"ahead" + head,
            head.upper(),
            head[:-1],
        ],
        "refused": [other_head, head + b"\t" + other_head],
    }
    cases = [(KEY.sign(data, c).file(), verdict) for verdict, cs in comments.items() for c in cs]
    cases += [(good, "good"), (good.replace(b"\n", b"\r\n"), "good"), (good.rstrip(), "good")]
    cases += [(with_line(0, b"untrusted comment: of anybody"), "good")]
    refused = [
        b"",
        b"\n\n\n",
        good[:-40],
        b"\n".join(lines[:2]),
        with_line(0, b"comment"),
        with_line(2, lines[2] + b" "),
        with_line(2, lines[2].replace(b"file:chain", b"file:other")),
        with_line(2, lines[2].replace(b"trusted", b"Trusted")),
        with_line(1, lines[1][:-4]),
        with_line(1, lines[1] + b"AAAA"),
        with_line(3, lines[1]),
        with_byte(1, 1, ord("D") ^ ord("d")),  # an older algorithm
        with_byte(1, 2),
        with_byte(1, 10),
        with_byte(1, 73, 128),
        with_line(1, lines[1][:-2] + bytes([lines[1][-2] + 1]) + b"="),  # bits behind the last byte
        with_byte(3, 0),
        with_byte(3, 63, 128),
        good.decode().encode("utf-16"),
        *(x.sign(data, head).file() for x in (stranger, impostor)),
        KEY.sign(other, other_head).file(),
    ]
    found = [(x, verdict) for x, verdict in (*cases, *((x, "refused") for x in refused))]
    return {
        "file": SIGNED,
        "public_key": KEY.public.text,
        "cases": [{"signature": base64.b64encode(x).decode(), "verdict": verdict} for x, verdict in found],
    }


def text(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    Path(FILE).write_text(text(signatures()), encoding="utf-8")
