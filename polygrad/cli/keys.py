"""Keys that sign exported files, whose passwords are asked for on the terminal."""

from __future__ import annotations

import getpass
from pathlib import Path

from polygrad.errors import ArgumentError
from polygrad.export.signing import generate_key, sign


def sign_exported(path: Path, key: str, comment: str = "") -> None:
    """Sign a file; its key's password is asked for if there is one. Raises as `export.sign` does."""
    sign(path, key, password=lambda: getpass.getpass(f"password of {key}: "), comment=comment)


def make_key(path: str, is_encrypted: bool) -> str:
    """Write a new key; its public key. Raises ArgumentError."""
    if not is_encrypted:
        return generate_key(path)
    password = getpass.getpass(f"password of {path}: ")
    if not password or password != getpass.getpass("the same again: "):
        raise ArgumentError("password: expected the same password twice, got another or none")
    return generate_key(path, password=password)
