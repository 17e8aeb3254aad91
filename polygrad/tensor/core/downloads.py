"""`fetch`: files from the network, whole or not at all, and kept.

Nothing but https is followed, nothing leads from a public address to one of this machine or of a private
network, and what a server sends is bounded in bytes and seconds. Modules for networks are imported when they
are needed, as pages have none of them. Knows paths, no Tensors.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import pathlib
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from polygrad.errors import ArgumentError, FetchError
from polygrad.tensor.core.sources import path_of

MAX_BYTES = 64 << 30  # of a file, unless the caller says another number
_SILENCE = 30.0  # seconds without a byte from the server
_CHUNK = 1 << 20


def fetch(
    url: str,
    name: str | os.PathLike[str] | None = None,
    subdir: str | None = None,
    gunzip: bool = False,
    allow_caching: bool = True,
    headers: dict[str, str] | None = None,
    sha256: str | None = None,
    max_bytes: int = MAX_BYTES,
    timeout: float | None = None,
) -> pathlib.Path:
    """Download `url` once, and return the path of the file: `fetch("https://...")`.

    Files are stored in the user's cache folder (`XDG_CACHE_HOME`), in `subdir`, under `name` or a digest of
    the address; a `name` with a slash is a path outside of it. `gunzip`: unpack the file. `sha256`: the
    expected digest of the file; an address with `http:` needs it, unless it is this machine's. `max_bytes`:
    of the file, unpacked. `timeout`: seconds for all of it; a server that says nothing for 30 is given up
    anyway. A path, or an address that begins with `file:`, is returned unchanged.

    Raises FetchError: no network, an answer other than 200, one that is cut off, too long or too slow,
    another digest, a redirection from https to http or from a public address to a private one. ArgumentError
    for an address that is not http or https, or a timeout that is not positive.
    """
    local = path_of(url)
    if local is not None or url.startswith(("/", ".")):
        return local or pathlib.Path(url)
    if timeout is not None and not timeout > 0:
        raise ArgumentError(f"timeout: expected a positive number of seconds, got {timeout!r}")
    _check_address(url, sha256)
    target = _cache_path(url, name, subdir, gunzip, headers)
    if allow_caching and target.is_file() and (sha256 is None or _digest(target) == sha256):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            chunks = _chunks(url, headers or {}, gunzip, min(_SILENCE, timeout or _SILENCE))
            for chunk in _limited(chunks, url, max_bytes, timeout):
                out.write(chunk)
        if sha256 is not None and _digest(pathlib.Path(partial)) != sha256:
            raise FetchError(
                f"fetch {url}: expected a file of SHA-256 {sha256}, got {_digest(pathlib.Path(partial))}"
            )
        os.replace(partial, target)
    finally:
        pathlib.Path(partial).unlink(missing_ok=True)
    return target


def _check_address(url: str, sha256: str | None) -> None:
    scheme, host = _parts(url)
    if scheme not in ("http", "https") or not host:
        raise ArgumentError(
            f"fetch: expected an address that begins with https:, a path, or file:, got {url!r}"
        )
    if scheme == "http" and sha256 is None and not _is_private(host):
        raise FetchError(
            f"fetch {url}: expected https, got http, by which anybody on the way may change the file: use "
            "https, or pass the sha256 of the file"
        )


def _parts(url: str) -> tuple[str, str]:
    """The scheme and the host of an address. Raises ArgumentError."""
    import urllib.parse

    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError as e:
        raise ArgumentError(f"fetch: expected an address, got {url!r}: {e}") from e
    return parts.scheme, parts.hostname or ""


def _is_private(host: str) -> bool:
    """Whether a host has an address of this machine or of a private network."""
    import ipaddress
    import socket

    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:  # nobody knows the host, and so nothing will come from it
        return False
    return any(not ipaddress.ip_address(str(address).partition("%")[0]).is_global for address in addresses)


def _cache_path(
    url: str, name: Any, subdir: str | None, gunzip: bool, headers: dict[str, str] | None
) -> pathlib.Path:
    if name is not None and (isinstance(name, pathlib.PurePath) or "/" in os.fspath(name)):
        return pathlib.Path(name)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    key = "\n".join([url, str(gunzip), *sorted(f"{k}: {v}" for k, v in (headers or {}).items())])
    file_name = os.fspath(name) if name is not None else hashlib.sha256(key.encode()).hexdigest()[:32]
    return pathlib.Path(base) / "polygrad" / "downloads" / (subdir or "") / file_name


def _digest(path: pathlib.Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _limited(chunks: Iterator[bytes], url: str, max_bytes: int, timeout: float | None) -> Iterator[bytes]:
    """The chunks, as long as they keep to the limits. Raises FetchError."""
    received, start = 0, time.monotonic()
    for chunk in chunks:
        received += len(chunk)
        if received > max_bytes:
            raise FetchError(f"fetch {url}: more than max_bytes, {max_bytes} bytes, arrived")
        if timeout is not None and time.monotonic() - start > timeout:
            raise FetchError(
                f"fetch {url}: {received} bytes arrived in {timeout} s, and the file is not whole"
            )
        yield chunk


def _chunks(url: str, headers: dict[str, str], gunzip: bool, silence: float) -> Iterator[bytes]:
    """What the server sends, each time that something arrives, which it has to within `silence` seconds.
    Raises FetchError, also when it sends less than it said."""
    import http.client
    import urllib.error
    import urllib.request
    import zlib

    class Redirections(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, request: Any, *more: Any) -> Any:
            _check_redirection(url, more[-1])
            return super().redirect_request(request, *more)

    try:
        request = urllib.request.Request(url, headers={"User-Agent": "polygrad", **headers})
        with urllib.request.build_opener(Redirections).open(request, timeout=silence) as answer:
            counted: Any = _Counted(answer)
            stream = gzip.GzipFile(fileobj=counted) if gunzip else counted
            while chunk := stream.read1(_CHUNK):
                yield chunk
            length = answer.headers.get("Content-Length")
            if length is not None and counted.received != int(length):
                raise OSError(f"{counted.received} of {length} bytes: the connection was closed")
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError, EOFError, zlib.error) as e:
        raise FetchError(
            f"fetch {url}: expected an answer, got {e}: download the file and pass its path"
        ) from e


class _Counted:
    """A stream that counts the bytes which are read from it. It gives those that have arrived."""

    def __init__(self, stream: Any) -> None:
        self._stream, self.received = stream, 0

    def read1(self, size: int) -> bytes:
        data: bytes = self._stream.read1(size)
        self.received += len(data)
        return data

    read = read1  # what gzip calls


def _check_redirection(url: str, target: str) -> None:
    """Raises FetchError for a redirection to another scheme, or from a public address to a private one."""
    (scheme, host), (other_scheme, other) = _parts(url), _parts(target)
    if other_scheme not in ("https", scheme):
        raise FetchError(f"fetch {url}: the server redirects to {target}, which is not https")
    if other != host and _is_private(other) and not _is_private(host):
        raise FetchError(f"fetch {url}: the server redirects to {target}, an address of a private network")
