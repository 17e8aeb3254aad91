"""`sign` and `generate_key`: signatures of exported files, and their check by those who load one.

A signature is a file beside the signed one, `model.pgrd.minisig`, as the tool minisign makes and verifies it
(`export/minisign.py`). Its trusted comment ends with `head:` and the first 44 bytes of the file in
hexadecimal. These have the header's SHA-256, and the header has those of all parts. So whoever reads a file
while it arrives checks the signature first, and uses no byte that was not signed:
`wasm_runtime/src/signatures.ts`. Here all of the file is compared with the signature.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from polygrad.errors import ArgumentError, SignatureError
from polygrad.export.files import read_file, read_source
from polygrad.export.minisign import (
    PublicKey,
    Signature,
    is_encrypted,
    new_key,
    read_public_key,
    read_secret_key,
    read_signature,
    verify,
)
from polygrad.helpers import write_file
from polygrad.runtime.parts import HEAD_BYTES

SUFFIX = ".minisig"
_HEAD = re.compile(rb"(?:^|[\t ])head:([0-9a-f]{%d})\Z" % (2 * HEAD_BYTES))

Password = str | Callable[[], str] | None
FilePath = str | os.PathLike[str]


def generate_key(path: FilePath, *, password: str | None = None) -> str:
    """Write a new secret key to the file `path`, which only its owner may read, and its public key beside it,
    to a file that ends in .pub. Returns the public key as text, for those who load what it signs. The files
    are minisign's.

    password: what the secret key is encrypted with. To sign takes seconds and 1 GiB of memory then.

    Raises ArgumentError for a file that exists, DeviceError without the package cryptography, OSError.
    """
    secret, public = Path(path), Path(path).with_suffix(".pub")
    if exists := [file for file in (secret, public) if file.exists()]:
        raise ArgumentError(f"generate_key: expected a new file, got {exists[0]}, which exists")
    key = new_key()
    with open(os.open(secret, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(key.file(password))
    write_file(public, [key.public.file()])
    return key.public.text


def sign(path: FilePath, key: FilePath, *, password: Password = None, comment: str = "") -> None:
    """Sign an exported file: the signature is written beside it, to a file that ends in .minisig. Loaders
    that are given the public key check it, and so does `minisign -Vm model.pgrd -p signing.pub`.

    key: the file of a secret key that `generate_key` or `minisign -G` made. password: of an encrypted key, or
    a function that is called for it if the key needs one. comment: a line that is signed with the file.

    Raises ProgramError for a damaged file, ArgumentError for what is no key, another password, or a comment
    of several lines; DeviceError without the package cryptography; OSError.

    export.sign("model.pgrd", "signing.key", comment="release 1.2")
    """
    data = read_source(path)
    read_file(data)
    secret = Path(key).read_bytes()
    if callable(password):
        password = password() if is_encrypted(secret) else None
    fields = [f"timestamp:{int(time.time())}", f"file:{Path(path).name}", "hashed", comment]
    fields.append(f"head:{data[:HEAD_BYTES].hex()}")
    trusted = "\t".join(filter(None, fields)).encode()
    signature = read_secret_key(secret, password).sign(data, trusted)
    write_file(f"{os.fspath(path)}{SUFFIX}", [signature.file()])


def find_signature(source: Any, signature: Any = None) -> Signature | None:
    """The signature of a source: `signature`, a path or bytes; else that of the file beside it, or None where
    there is none. Raises SignatureError for what is no signature."""
    if signature is None and isinstance(source, (str, os.PathLike)):
        beside = Path(f"{os.fspath(source)}{SUFFIX}")
        signature = beside if beside.exists() else None
    return None if signature is None else read_signature(bytes(read_source(signature)))


def read_signed(source: Any, public_key: FilePath | None, signature: Any = None) -> memoryview:
    """The bytes of a file, which `public_key` has to have signed if it is given: a key's text, or a file with
    it. Raises as `check_signature` does."""
    data = read_source(source)
    if public_key is not None:
        check_signature(source, data, public_key, signature)
    elif signature is not None:
        raise ArgumentError("signature: expected a public_key with it, got none")
    return data


def check_signature(source: Any, data: memoryview, public_key: FilePath, signature: Any = None) -> Signature:
    """The signature of `data`, the bytes of `source`, by a key. Raises SignatureError where there is none, or
    another one; ArgumentError for what is no key; DeviceError without the package cryptography; OSError."""
    key = _public_key(public_key)
    own = find_signature(source, signature)
    if own is None:
        is_path = isinstance(source, (str, os.PathLike))
        place = f"{os.fspath(source)}{SUFFIX}" if is_path else "the argument signature"
        raise SignatureError(f"signature: expected one by key {key.name}, got none: it belongs in {place}")
    verify(data, own, key)
    head = _HEAD.search(own.comment)
    if head is not None and head[1] != data[:HEAD_BYTES].hex().encode():
        raise SignatureError("signature: expected the file's head in its trusted comment, got another's")
    return own


def _public_key(key: FilePath) -> PublicKey:
    """A key's text, if no file has that name, or the key in a file."""
    text = os.fspath(key)
    is_text = isinstance(key, str) and text.startswith("RW") and not Path(text).exists()
    return read_public_key(text.encode() if is_text else Path(text).read_bytes())
