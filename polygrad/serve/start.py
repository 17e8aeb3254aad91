"""Runs a server: binds, prints the address, and shuts down gracefully."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import math
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from polygrad.errors import ArgumentError
from polygrad.hf.instances import HFInstance
from polygrad.serve.app import Service
from polygrad.serve.limits import Limits

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_STALL_SECONDS = 60.0  # a client that reads nothing for this long is disconnected


def run(
    model: HFInstance,
    name: str,
    host: str,
    port: int,
    api_key: str | None,
    limits: Limits,
    log_requests: bool,
) -> None:
    """See `polygrad.serve.serve`."""
    if not 0 <= port < 1 << 16:
        raise ArgumentError(f"port: expected 0 to 65535, got {port}")
    if api_key is not None and not api_key:
        raise ArgumentError("api_key: expected a key, got an empty string")
    hosts = _LOCAL_NAMES | {host} if _is_loopback(host) else None
    service = Service(model, name, api_key, limits, hosts, log_requests)
    listener = _bound(host, port)
    shown = f"[{host}]" if ":" in host else host
    config = uvicorn.Config(
        service.app(),
        http=_protocol(limits),
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=math.ceil(limits.stop_seconds) + 5,
    )
    server = _Server(config, service, f"http://{shown}:{listener.getsockname()[1]}")
    with contextlib.closing(listener):
        server.run([listener])


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as e:
        raise ArgumentError(f"host: {host}, port {port}: {e.strerror or e}") from e


class _Server(uvicorn.Server):
    """Prints the address once it accepts requests; the first signal shuts it down gracefully, with status
    0."""

    def __init__(self, config: uvicorn.Config, service: Service, address: str) -> None:
        super().__init__(config)
        self._service, self._address = service, address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            sys.stderr.write(f"polygrad serve: {self._service.name} at {self._address}/v1\n")
            sys.stderr.flush()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.engine.close()
        # answers that take too long get an error
        expiry = asyncio.get_running_loop().call_later(
            self._service.limits.stop_seconds, self._service.engine.stop, 0
        )
        await super().shutdown(sockets)
        expiry.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The base class raises the signal again at the end, which would end the process as if killed."""
        before = {s: signal.signal(s, self.handle_exit) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _protocol(limits: Limits) -> type[H11Protocol]:
    class Protocol(H11Protocol):
        """HTTP with timeouts: clients that send no request, or do not read the response, are disconnected."""

        _has_asked = False
        _silence: asyncio.TimerHandle | None = None
        _stall: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._silence = self.loop.call_later(limits.body_seconds, self._leave_silent)

        def handle_events(self) -> None:
            super().handle_events()
            self._has_asked = self._has_asked or self.scope is not None

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in (self._silence, self._stall):
                if timer is not None:
                    timer.cancel()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stall = self.loop.call_later(_STALL_SECONDS, self.transport.abort)

        def resume_writing(self) -> None:
            if self._stall is not None:
                self._stall.cancel()
            super().resume_writing()

        def _leave_silent(self) -> None:
            if not self._has_asked:
                self.transport.abort()

    return Protocol
