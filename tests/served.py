"""A server in a process of its own, on a loopback address, and small clients of it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import openai

_PATIENCE = 120.0


@dataclass
class Server:
    """`url`: with /v1. `lines`: what it wrote on standard error since."""

    process: subprocess.Popen[str]
    url: str
    lines: list[str] = field(default_factory=list)

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname and parts.port
        return parts.hostname, parts.port

    def client(self, **options: Any) -> openai.OpenAI:
        """openai's client, which does not try again."""
        settings = {"api_key": "none", "max_retries": 0, "timeout": _PATIENCE, **options}
        return openai.OpenAI(base_url=self.url, **settings)

    def connect(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(self.address, timeout=_PATIENCE)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        """The status and the body of a response, whose connection is closed."""
        header_fields = {
            "content-type": "application/json",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        with self.connect() as connection:
            connection.sendall(head(method, path, {"content-length": str(len(body)), **header_fields}) + body)
            return response(connection)

    def post(self, path: str, value: Any) -> tuple[int, Any]:
        """The status and the JSON of a response; `value`: JSON, or bytes as they are."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        status, body = self.ask("POST", path, data)
        return status, json.loads(body)

    def health(self) -> dict[str, Any]:
        return json.loads(self.ask("GET", "/health")[1])

    def metric(self, name: str) -> float:
        """A number of /metrics."""
        text = self.ask("GET", "/metrics")[1].decode()
        match = re.search(rf"^polygrad_{re.escape(name)} (\S+)$", text, re.MULTILINE)
        assert match, f"{name} is not in\n{text}"
        return float(match[1])

    def memory(self) -> int:
        """Bytes of resident memory."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def head(method: str, path: str, headers: dict[str, str]) -> bytes:
    """The head of a request of HTTP."""
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", "connection: close"]
    return "\r\n".join([*lines, *(f"{k}: {v}" for k, v in headers.items()), "", ""]).encode()


def response(connection: socket.socket) -> tuple[int, bytes]:
    """What comes until the connection is closed."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            data += part
    first, _, body = data.partition(b"\r\n\r\n")
    assert first, "the connection was closed without a response"
    return int(first.split()[1]), body


@contextlib.contextmanager
def serving(model: str, *options: str) -> Iterator[Server]:
    """A server of a folder, on any free port, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "polygrad", "serve", model, "--port", "0", "--name", "tiny", *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    reader: threading.Thread | None = None
    try:
        ready, _, _ = select.select([process.stderr], [], [], _PATIENCE)
        line = process.stderr.readline() if ready else ""
        match = re.search(r"http://\S+", line)
        assert match, f"the server did not start: {line}{process.stderr.read() if ready else ''}"
        server = Server(process, match[0])
        reader = threading.Thread(target=lambda: server.lines.extend(process.stderr), daemon=True)
        reader.start()
        yield server
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if reader is not None:
            reader.join(10)
        process.stderr.close()
