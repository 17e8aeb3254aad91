"""`fetch`: whole files or none, from where the address says, within limits."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from polygrad import Tensor, fetch
from polygrad.errors import ArgumentError, FetchError
from polygrad.tensor.core import downloads

TWO = bytes([1, 2])
LARGE = bytes(3 << 20)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as its paths say."""

    files: dict[str, bytes]

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        name = self.path[1:]
        if name.startswith("to:"):
            self.send_response(302)
            self.send_header("Location", name.removeprefix("to:"))
            self.end_headers()
            return
        if name not in self.files:
            self.send_error(404)
            return
        data = self.files[name]
        self.send_response(200)
        if name == "chunks":  # HTTP's chunks, of which the last ones never come
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\nhello\r\n9\r\nw")
            return
        self.send_header("Content-Length", str(len(data) + (100 if name == "cut" else 0)))
        self.end_headers()
        if name == "drops":
            with contextlib.suppress(OSError):  # the client has gone
                for i in range(100):
                    self.wfile.write(data[i : i + 1])
                    time.sleep(0.05)
            return
        time.sleep(2 if name == "silent" else 0)
        with contextlib.suppress(OSError):
            self.wfile.write(data)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bomb = gzip.compress(LARGE)
    Handler.files = {"two": TWO, "cut": TWO, "chunks": TWO, "drops": LARGE, "silent": TWO, "large": LARGE}
    Handler.files |= {"bomb": bomb, "short": bomb[:-9], "torn": bomb[:20] + b"torn" + bomb[24:]}
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    assert not list((tmp_path / "cache").rglob("tmp*")), "nothing is left of what failed"


def test_a_file_is_downloaded_once(server: str, tmp_path: Path) -> None:
    path = fetch(f"{server}/two")
    assert path.read_bytes() == TWO and path.is_relative_to(tmp_path / "cache")
    assert Tensor.from_url(f"{server}/two").tolist() == [1, 2]
    Handler.files["two"] = b"new"
    assert fetch(f"{server}/two").read_bytes() == TWO  # from the cache
    assert fetch(f"{server}/two", allow_caching=False).read_bytes() == b"new"
    digest = hashlib.sha256(b"new").hexdigest()
    assert fetch(f"{server}/two", sha256=digest).read_bytes() == b"new"
    with pytest.raises(FetchError, match="expected a file of SHA-256 0000"):
        fetch(f"{server}/two", sha256="0" * 64)
    with pytest.raises(FetchError, match="404"):
        fetch(f"{server}/none")
    assert fetch(f"{server}/bomb", gunzip=True).read_bytes() == LARGE
    assert fetch("./here") == Path("here") and fetch("file:/there") == Path("/there")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cut", {}, "2 of 102 bytes: the connection was closed"),
        ("large", {"max_bytes": 1 << 20}, "more than max_bytes, 1048576 bytes, arrived"),
        ("bomb", {"max_bytes": 1 << 20, "gunzip": True}, "more than max_bytes"),
        ("drops", {"timeout": 0.3}, "bytes arrived in 0.3 s, and the file is not whole"),
        ("silent", {"timeout": 0.3}, "timed out"),
        ("chunks", {}, "IncompleteRead"),
        ("short", {"gunzip": True}, "ended before the end-of-stream"),
        ("torn", {"gunzip": True}, "expected an answer, got"),
        ("two", {"gunzip": True}, "Not a gzipped file"),
        ("to:ftp://127.0.0.1/two", {}, "redirects to ftp://127.0.0.1/two, which is not https"),
        ("to:file:///etc/hostname", {}, "Redirection to url 'file:///etc/hostname' is not allowed"),
    ],
)
def test_what_is_not_whole_or_not_there_is_an_error_and_not_kept(
    server: str, name: str, options: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(FetchError, match=message):
        fetch(f"{server}/{name}", **options)  # type: ignore[arg-type]
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


def test_a_redirection_within_a_network_is_followed(server: str) -> None:
    assert fetch(f"{server}/to:{server}/two").read_bytes() == TWO


def test_redirections_do_not_leave_https_or_enter_a_private_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "_is_private", lambda host: host.endswith(".internal"))
    check = downloads._check_redirection
    with pytest.raises(FetchError, match=r"redirects to http://b.*, which is not https"):
        check("https://a.example/x", "http://b.example/x")
    with pytest.raises(FetchError, match=r"redirects to https://b.*, an address of a private network"):
        check("https://a.example/x", "https://b.internal/x")
    for url, target in (
        ("http://a.example/x", "https://b.example/x"),
        ("https://a.internal/x", "https://b.internal/x"),
        ("https://a.example/x", "https://b.example/x"),
    ):
        check(url, target)


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "_is_private", lambda host: False)
    with pytest.raises(FetchError, match="expected https, got http, by which anybody on the way may change"):
        fetch("http://example.com/weights")
    for url in ("ftp://example.com/x", "https:///x", "data:,x"):
        with pytest.raises(ArgumentError, match="expected an address that begins with https:"):
            fetch(url)
    with pytest.raises(ArgumentError, match=r"expected an address, got 'https://\[x': Invalid IPv6 URL"):
        fetch("https://[x")
    with pytest.raises(ArgumentError, match="timeout: expected a positive number of seconds, got 0"):
        fetch("https://example.com/x", timeout=0)


@pytest.mark.parametrize(
    ("host", "private"),
    [("127.0.0.1", True), ("10.1.2.3", True), ("169.254.169.254", True), ("::1", True), ("1.1.1.1", False)],
)
def test_which_hosts_are_private(host: str, private: bool) -> None:
    assert downloads._is_private(host) is private
