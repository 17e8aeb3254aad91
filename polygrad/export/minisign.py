"""Keys and signatures as files of minisign (https://jedisct1.github.io/minisign/): Ed25519 over the
BLAKE2b-512 of a file, and over the signature with a comment, which is called trusted for that.

This module knows bytes alone. `export/signing.py` says what is signed, and where its signature is. Ed25519
and scrypt are those of the package cryptography.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import importlib
import os
import struct
from dataclasses import dataclass
from typing import Any

from polygrad.errors import ArgumentError, DeviceError, SignatureError

_UNTRUSTED, _TRUSTED = b"untrusted comment: ", b"trusted comment: "
_KEY, _HASHED = b"Ed", b"ED"  # algorithms: of keys; of signatures over a digest
_SCRYPT, _PLAIN, _BLAKE2B = b"Sc", b"\0\0", b"B2"  # how a secret key is kept, and its checksum
_LIMITS = (1 << 25, 1 << 30)  # operations and bytes of scrypt for a new key: libsodium's SENSITIVE
_PUBLIC_KEY = struct.Struct("2s8s32s")
_SIGNATURE = struct.Struct("2s8s64s")
_SECRET_KEY = struct.Struct("<2s2s2s32sQQ104s")
_SECRETS = struct.Struct("8s32s32s32s")  # the key's number, its seed, the public key, a checksum


@dataclass(frozen=True)
class PublicKey:
    number: bytes
    key: bytes

    @property
    def name(self) -> str:
        return _name_of(self.number)

    @property
    def text(self) -> str:
        return _encoded(_PUBLIC_KEY.pack(_KEY, self.number, self.key)).decode()

    def file(self) -> bytes:
        return _lines(_UNTRUSTED + f"minisign public key {self.name}".encode(), self.text.encode())


@dataclass(frozen=True)
class Signature:
    """`number`: of the key. `over_comment` is over the signature and the comment."""

    number: bytes
    signature: bytes
    comment: bytes
    over_comment: bytes

    @property
    def key_name(self) -> str:
        return _name_of(self.number)

    def file(self) -> bytes:
        return _lines(
            _UNTRUSTED + f"signature of polygrad by key {self.key_name}".encode(),
            _encoded(_SIGNATURE.pack(_HASHED, self.number, self.signature)),
            _TRUSTED + self.comment,
            _encoded(self.over_comment),
        )


@dataclass(frozen=True, repr=False)
class SecretKey:
    public: PublicKey
    seed: bytes

    def sign(self, data: memoryview, comment: bytes) -> Signature:
        """Raises ArgumentError for a comment that is no line."""
        if b"\n" in comment or b"\r" in comment:
            raise ArgumentError(
                f"sign: comment: expected one line, got {comment.decode(errors='replace')!r:.80}"
            )
        private = _ed25519().Ed25519PrivateKey.from_private_bytes(self.seed)
        signature: bytes = private.sign(hashlib.blake2b(data).digest())
        return Signature(self.public.number, signature, comment, private.sign(signature + comment))

    def file(self, password: str | None) -> bytes:
        secrets = _SECRETS.pack(self.public.number, self.seed, self.public.key, _checksum(self))
        salt, limits = (bytes(32), (0, 0)) if password is None else (os.urandom(32), _LIMITS)
        if password is not None:
            secrets = _xor(secrets, _stream(password, salt, *limits))
        how = _PLAIN if password is None else _SCRYPT
        packed = _SECRET_KEY.pack(_KEY, how, _BLAKE2B, salt, *limits, secrets)
        return _lines(_UNTRUSTED + b"minisign secret key", _encoded(packed))


def _name_of(number: bytes) -> str:
    """A key's number as minisign shows it."""
    return number[::-1].hex().upper()


def new_key() -> SecretKey:
    """A key at random. Raises DeviceError without the package cryptography."""
    private = _ed25519().Ed25519PrivateKey.generate()
    return SecretKey(
        PublicKey(os.urandom(8), private.public_key().public_bytes_raw()), private.private_bytes_raw()
    )


def read_public_key(text: bytes) -> PublicKey:
    """The public key in a file, or its line alone. Raises ArgumentError."""
    lines = text.split()  # the comment of a file has words of its own
    raw = _decoded(lines[-1] if lines else b"")
    if len(raw) != _PUBLIC_KEY.size or raw[:2] != _KEY:
        raise ArgumentError(
            f"public key: expected one of minisign, RW..., got {text.decode(errors='replace')!r:.80}"
        )
    _, number, key = _PUBLIC_KEY.unpack(raw)
    return PublicKey(number, key)


def is_encrypted(text: bytes) -> bool:
    """Whether a secret key needs a password. Raises ArgumentError for what is none."""
    return _unpacked_secret(text)[1] == _SCRYPT


def read_secret_key(text: bytes, password: str | None) -> SecretKey:
    """The secret key in a file. Raises ArgumentError for another file, and for another password."""
    _, how, _, salt, operations, nbytes, secrets = _unpacked_secret(text)
    if (how == _SCRYPT) != (password is not None):
        expected, got = ("a password", "none") if password is None else ("none", "one")
        raise ArgumentError(f"secret key: expected {expected} for this key, got {got}")
    if password is not None:
        secrets = _xor(secrets, _stream(password, salt, operations, nbytes))
    number, seed, public, checksum = _SECRETS.unpack(secrets)
    key = SecretKey(PublicKey(number, public), seed)
    if password is not None and not hmac.compare_digest(_checksum(key), checksum):
        raise ArgumentError("secret key: expected the password that it was encrypted with, got another")
    if _ed25519().Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw() != public:
        raise ArgumentError(
            "secret key: expected the public key that belongs to it, got another: it is damaged"
        )
    return key


def read_signature(text: bytes) -> Signature:
    """Raises SignatureError for what is no signature."""
    lines = [line.removesuffix(b"\r") for line in text.split(b"\n")]
    if len(lines) < 4 or not lines[0].startswith(_UNTRUSTED) or not lines[2].startswith(_TRUSTED):
        raise SignatureError("signature: expected four lines of minisign, got others")
    raw, over_comment = _decoded(lines[1]), _decoded(lines[3])
    if len(raw) != _SIGNATURE.size or len(over_comment) != 64:
        raise SignatureError("signature: expected one of minisign, got damaged lines")
    algorithm, number, signature = _SIGNATURE.unpack(raw)
    if algorithm != _HASHED:
        raise SignatureError(
            f"signature: expected one over a BLAKE2b digest (ED), got algorithm {algorithm!r}: sign it anew, "
            "with minisign 0.10 or newer"
        )
    return Signature(number, signature, lines[2].removeprefix(_TRUSTED), over_comment)


def verify(data: memoryview, signature: Signature, key: PublicKey) -> None:
    """Raises SignatureError unless `signature` is of these bytes, and of its comment, by `key`."""
    if signature.number != key.number:
        raise SignatureError(
            f"signature: expected key {key.name}, got a signature by key {signature.key_name}"
        )
    signed = {
        "the file": (signature.signature, hashlib.blake2b(data).digest()),
        "its trusted comment": (signature.over_comment, signature.signature + signature.comment),
    }
    public = _ed25519().Ed25519PublicKey.from_public_bytes(key.key)
    invalid: Any = importlib.import_module("cryptography.exceptions").InvalidSignature
    for what, (proof, message) in signed.items():
        try:
            public.verify(proof, message)
        except invalid as e:
            raise SignatureError(
                f"signature: {what} is not what key {key.name} signed: it was changed, or is another's"
            ) from e


def _ed25519() -> Any:
    """The classes of Ed25519. Raises DeviceError where the package is missing."""
    try:
        return importlib.import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    except ImportError as e:
        raise DeviceError(
            'signature: the package cryptography is not installed: pip install "polygrad[signatures]"'
        ) from e


def _stream(password: str, salt: bytes, operations: int, nbytes: int) -> bytes:
    """What the secrets of a key are combined with: libsodium's crypto_pwhash_scryptsalsa208sha256."""
    operations = max(operations, 1 << 15)
    limit = operations // 32 if operations < nbytes // 32 else nbytes // 1024
    log = max(1, limit.bit_length() - 1)
    parallel = 1 if operations < nbytes // 32 else (operations // 4 >> log) // 8
    if log > 22 or not 1 <= parallel <= 16:
        raise ArgumentError("secret key: expected a password that takes up to 4 GiB to check, got more")
    _ed25519()
    kdf: Any = importlib.import_module("cryptography.hazmat.primitives.kdf.scrypt")
    stream: bytes = kdf.Scrypt(salt, _SECRETS.size, 1 << log, 8, parallel).derive(password.encode())
    return stream


def _checksum(key: SecretKey) -> bytes:
    secrets = _KEY + key.public.number + key.seed + key.public.key
    return hashlib.blake2b(secrets, digest_size=32).digest()


def _unpacked_secret(text: bytes) -> tuple[Any, ...]:
    lines = text.splitlines()
    raw = _decoded(lines[1]) if len(lines) > 1 else b""
    if len(raw) == _SECRET_KEY.size:
        fields = _SECRET_KEY.unpack(raw)
        if fields[0] == _KEY and fields[1] in (_SCRYPT, _PLAIN) and fields[2] == _BLAKE2B:
            return fields
    raise ArgumentError("secret key: expected a file of minisign, got another")


def _xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


def _lines(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _encoded(raw: bytes) -> bytes:
    return base64.b64encode(raw)


def _decoded(line: bytes) -> bytes:
    """Bytes of base64; none for another text, also for another way to write the same bytes."""
    line = line.strip()
    try:
        raw = base64.b64decode(line, validate=True)
    except ValueError:
        return b""
    return raw if _encoded(raw) == line else b""
