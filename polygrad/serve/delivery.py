"""Delivery from the engine's thread to the event loop, and detection of clients that disconnect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

_T = TypeVar("_T")
Receive = Callable[[], Awaitable[Any]]


class ClientGoneError(Exception):
    """The client closed its connection, so the answer is not needed."""


class Delivery:
    """The messages of the engine's thread about one request, in order. It is made in the event loop that
    reads it.

    The engine never waits: messages for a slow client are queued, at most the size of its answers.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Any] = asyncio.Queue()

    def put(self, *what: Any) -> None:
        """Called by the engine's thread. Raises RuntimeError when the loop is closed."""
        self._loop.call_soon_threadsafe(self._queue.put_nowait, what)

    async def get(self) -> Any:
        """The next message, a tuple."""
        return await self._queue.get()


async def await_unless_disconnected(work: Awaitable[_T], receive: Receive) -> _T:
    """The result of `work`, which is cancelled when the client leaves. The request's body has been read.

    Raises ClientGoneError.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGoneError
    finally:
        for task in (working, leaving):
            if not task.done():
                task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
