"""The routes of a server, what guards them, and how an answer goes out."""

from __future__ import annotations

import asyncio
import hmac
import json
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from polygrad.errors import ArgumentError
from polygrad.generation.requests import Piece
from polygrad.hf.instances import HFInstance, LanguageModel
from polygrad.hf.text_encoders import TextEncoder
from polygrad.serve.answers import Answers, embeddings
from polygrad.serve.body import RequestBody, parse_body
from polygrad.serve.delivery import ClientGoneError, Delivery, await_unless_disconnected
from polygrad.serve.embedding import EncoderThread
from polygrad.serve.generating import EngineThread, PendingChoice
from polygrad.serve.limits import Limits
from polygrad.serve.metrics import Metrics
from polygrad.serve.parameters import Asked, RequestReader, read_embedding
from polygrad.serve.refusal import Refusal, too_late

Handle = Callable[[Request], Awaitable[Response]]
_THREADS = 4  # that read bodies side by side
_GONE = 499  # the status that logs give a client that left


class Service:
    """A model with its thread, and the handlers of requests. `hosts`: the host names that clients may use;
    None: any."""

    def __init__(
        self,
        model: HFInstance,
        name: str,
        api_key: str | None,
        limits: Limits,
        hosts: frozenset[str] | None,
        log_requests: bool = False,
    ) -> None:
        self.name, self.limits, self._hosts = name, limits, hosts
        self._key = None if api_key is None else api_key.encode()
        self._logs, self._created = log_requests, int(time.time())
        self.engine: EngineThread | EncoderThread
        if isinstance(model, LanguageModel):
            self.engine = EngineThread(model, limits.queue)
            self._reader = RequestReader(model, limits)
            self._most = model.max_batch + limits.queue
        elif isinstance(model, TextEncoder):
            self.engine = EncoderThread(model, limits.queue)
            self._most = 1 + limits.queue
        else:
            raise ArgumentError(f"serve: expected a model that writes text or embeds it, got {model!r}")
        self._active = 0
        self._reading: anyio.CapacityLimiter | None = None
        engine = self.engine
        self.metrics = Metrics(
            {
                "pending_answers": ("Answers that run or wait.", lambda: engine.pending),
                "waiting_answers": ("Answers that wait for a place.", lambda: engine.waiting),
                "active_requests": ("Requests that are being answered.", lambda: self._active),
            }
        )

    def app(self) -> Starlette:
        """The ASGI application."""

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            self._reading = anyio.CapacityLimiter(_THREADS)
            self.engine.start()
            yield
            await anyio.to_thread.run_sync(self.engine.stop)

        routes = [
            ("/health", "GET", self._health, True),
            ("/metrics", "GET", self._show_metrics, False),
            ("/v1/models", "GET", self._models, False),
            ("/v1/models/{name:path}", "GET", self._model, False),
            ("/v1/chat/completions", "POST", self._chat, False),
            ("/v1/completions", "POST", self._completion, False),
            ("/v1/embeddings", "POST", self._embedding, False),
            ("/{path:path}", "", self._nothing, False),
        ]
        return Starlette(
            routes=[
                Route(path, _Endpoint(self, path, method, handle, is_open))
                for path, method, handle, is_open in routes
            ],
            lifespan=lifespan,
        )

    def admit(self, request: Request, is_open: bool) -> None:
        """Raises Refusal for a client without permission."""
        if self._hosts is not None and (request.url.hostname or "") not in self._hosts:
            # a page of another site whose name leads here, for one
            raise Refusal(403, "this server answers on this machine only: expected its name as host")
        if self._key is None or is_open:
            return
        kind, _, key = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(key.strip().encode(), self._key):
            raise Refusal(401, "expected the server's key: Authorization: Bearer KEY", code="invalid_api_key")

    def ended(self, method: str, path: str, status: int, seconds: float) -> None:
        """A request has been answered."""
        self.metrics.count_request(path, status, seconds)
        self.metrics.disconnected += status == _GONE
        if self._logs:
            sys.stderr.write(f"polygrad serve: {method} {path} {status} {seconds:.3f} s\n")

    # --- routes

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok", "model": self.name, "pending": self.engine.pending})

    async def _show_metrics(self, request: Request) -> Response:
        return PlainTextResponse(self.metrics.text(), media_type="text/plain; version=0.0.4")

    async def _models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._model_entry()]})

    async def _model(self, request: Request) -> Response:
        self._check_model(request.path_params["name"])
        return JSONResponse(self._model_entry())

    async def _nothing(self, request: Request) -> Response:
        raise Refusal(404, f"there is no {request.url.path:.200}", code="not_found")

    async def _chat(self, request: Request) -> Response:
        return await self._generate(request, lambda body: self._reader.chat(body))

    async def _completion(self, request: Request) -> Response:
        return await self._generate(request, lambda body: self._reader.completion(body))

    async def _embedding(self, request: Request) -> Response:
        engine = self.engine
        if not isinstance(engine, EncoderThread):
            raise Refusal(404, f"{self.name} writes text: it has no embeddings", code="model_not_supported")

        def read(body: RequestBody) -> tuple[list[list[int]], str]:
            texts, encoding = read_embedding(body, self.limits)
            rows = [engine.model.tokens_of(text) if isinstance(text, str) else text for text in texts]
            max_tokens = min(engine.model.max_tokens, self.limits.prompt_tokens or engine.model.max_tokens)
            try:
                engine.model.check_tokens(rows)
            except ArgumentError as e:
                raise Refusal(400, str(e), "input", "invalid_value") from e
            long = next((i for i, row in enumerate(rows) if len(row) > max_tokens), None)
            if long is not None:
                raise Refusal(
                    400,
                    f"input[{long}]: {len(rows[long])} tokens, more than the limit of {max_tokens}",
                    "input",
                    "context_length_exceeded",
                )
            return rows, encoding

        deadline = asyncio.get_running_loop().time() + self.limits.seconds
        with self._token_counts():
            rows, encoding = await self._read(request, read)
            delivery = Delivery()
            job = engine.submit(rows, delivery.put)
            try:
                (result,) = await await_unless_disconnected(
                    self._in_time(delivery.get(), deadline), request.receive
                )
            finally:
                engine.cancel(job)
        if isinstance(result, Refusal):
            raise result
        tokens = sum(map(len, rows))
        self.metrics.prompt_tokens += tokens
        return JSONResponse(embeddings(result, tokens, self.name, encoding))

    async def _generate(self, request: Request, read: Callable[[RequestBody], Asked]) -> Response:
        started = time.monotonic()
        engine = self.engine
        if not isinstance(engine, EngineThread):
            raise Refusal(404, f"{self.name} embeds text: it does not write", code="model_not_supported")
        deadline = asyncio.get_running_loop().time() + self.limits.seconds
        with self._token_counts():
            asked = await self._read(request, read)
            delivery = Delivery()
            places = engine.submit(asked.requests, delivery.put)
            self.metrics.prompt_tokens += asked.prompt_tokens
            answers = Answers(asked, self.name, engine.model.tokenizer)
            stream: AsyncIterator[tuple[int, list[Piece]]] = self._pieces(delivery, places, deadline, started)
            is_kept = False
            try:
                # an immediate refusal has its own status, also for streamed answers
                first = await await_unless_disconnected(anext(stream), request.receive)
                if asked.is_streamed:
                    is_kept = True
                    return _EventStream(self, answers, asked, first, stream, places)
                pieces: list[list[Piece]] = [[] for _ in places]
                await await_unless_disconnected(_collect(pieces, first, stream), request.receive)
                body = answers.whole(pieces)
                self.metrics.answer_tokens += answers.answer_tokens
                return JSONResponse(body)
            finally:
                if not is_kept:
                    engine.cancel(places)

    async def _pieces(
        self, delivery: Delivery, places: list[PendingChoice], deadline: float, started: float
    ) -> AsyncIterator[tuple[int, list[Piece]]]:
        """The pieces of all answers as they come, with the index of each answer. Raises Refusal."""
        running, is_first = len(places), True
        while running:
            index, item = await self._in_time(delivery.get(), deadline)
            if isinstance(item, Refusal):
                raise item
            if is_first:
                self.metrics.first_token.add(time.monotonic() - started)
                is_first = False
            running -= item[-1].finish_reason is not None
            yield index, item

    async def _in_time(self, work: Awaitable[Any], deadline: float) -> Any:
        try:
            async with asyncio.timeout_at(deadline):
                return await work
        except TimeoutError:
            raise too_late(self.limits.seconds) from None

    # --- what comes in

    def _token_counts(self) -> _Counted:
        if self._active >= self._most:
            raise Refusal(429, "too many requests are waiting: try again later", code="queue_full")
        return _Counted(self)

    async def _read(self, request: Request, read: Callable[[RequestBody], Any]) -> Any:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # pages of other sites cannot send this without a preflight request
            raise Refusal(415, f"content-type: expected application/json, got {kind!r:.80}")
        data = await self._body(request)

        def parse() -> Any:
            body = parse_body(data)
            model = body.text("model")
            if model is not None:
                self._check_model(model)
            return read(body)

        return await anyio.to_thread.run_sync(parse, limiter=self._reading)

    async def _body(self, request: Request) -> bytes:
        max_bytes = self.limits.body_bytes
        refusal = Refusal(413, f"body: expected at most {max_bytes} bytes", code="body_too_large")
        if int(request.headers.get("content-length", "0")) > max_bytes:
            raise refusal
        data = bytearray()
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                async for part in request.stream():
                    if len(data) + len(part) > max_bytes:
                        raise refusal
                    data += part
        except TimeoutError:
            raise Refusal(408, f"body: it took more than {self.limits.body_seconds:g} seconds") from None
        except ClientDisconnect:
            raise ClientGoneError from None
        return bytes(data)

    def _check_model(self, name: str) -> None:
        if name != self.name:
            raise Refusal(404, f"model: there is {self.name}, got {name!r:.200}", "model", "model_not_found")

    def _model_entry(self) -> dict[str, Any]:
        return {"id": self.name, "object": "model", "created": self._created, "owned_by": "polygrad"}


class _Counted:
    """Counts a request as active while it is read and answered."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def __enter__(self) -> None:
        self._service._active += 1

    def __exit__(self, *_: object) -> None:
        self._service._active -= 1


class _Endpoint:
    """A route as an ASGI application: every outcome has a status and is counted, and errors have OpenAI's
    shape."""

    def __init__(self, service: Service, path: str, method: str, handle: Handle, is_open: bool) -> None:
        self._service, self._path, self._method = service, path, method
        self._handle, self._is_open = handle, is_open

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        started, request = time.monotonic(), Request(scope, receive)
        status = _GONE
        try:
            response = await self._response(request)
            await response(scope, receive, send)
            status = response.final_status if isinstance(response, _EventStream) else response.status_code
        except ClientGoneError:
            pass
        finally:
            self._service.ended(request.method, self._path, status, time.monotonic() - started)

    async def _response(self, request: Request) -> Response:
        try:
            self._service.admit(request, self._is_open)
            if self._method and request.method not in (self._method, "HEAD" if self._method == "GET" else ""):
                raise Refusal(405, f"{self._path}: expected {self._method}, got {request.method:.20}")
            return await self._handle(request)
        except Refusal as e:
            # the unread part of the body is dropped
            is_left = request.method not in ("GET", "HEAD") and e.status in (
                401,
                403,
                404,
                405,
                408,
                413,
                415,
            )
            close = {"connection": "close"} if is_left or e.status == 429 else {}
            allow = {"allow": self._method} if e.status == 405 else {}
            return JSONResponse(e.body(), e.status, {**e.headers, **close, **allow})
        except ClientGoneError:
            raise
        except Exception as e:
            sys.stderr.write("polygrad serve: " + "".join(traceback.format_exception(e)))
            failure = Refusal(500, "the server failed", code="internal_error")
            return JSONResponse(failure.body(), 500, {"connection": "close"})


class _EventStream(Response):
    """Chunks as server-sent events, sent as soon as their pieces exist. `final_status`: the status in the
    log."""

    def __init__(
        self,
        service: Service,
        answers: Answers,
        asked: Asked,
        first: tuple[int, list[Piece]],
        stream: AsyncIterator[tuple[int, list[Piece]]],
        places: list[PendingChoice],
    ) -> None:
        super().__init__(media_type="text/event-stream", headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._service, self._answers, self._asked = service, answers, asked
        self._first, self._stream, self._places = first, stream, places
        self.final_status = 200

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        engine = self._service.engine
        assert isinstance(engine, EngineThread)
        with _Counted(self._service):
            try:
                await await_unless_disconnected(self._send_all(send), receive)
            finally:
                engine.cancel(self._places)
                self._service.metrics.answer_tokens += self._answers.answer_tokens

    async def _send_all(self, send: Any) -> None:
        async def write(*chunks: dict[str, Any]) -> None:
            if chunks:
                data = b"".join(_event(json.dumps(chunk)) for chunk in chunks)
                await send({"type": "http.response.body", "body": data, "more_body": True})

        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            await write(*self._answers.beginnings(), *self._answers.chunks(*self._first))
            async for index, pieces in self._stream:
                await write(*self._answers.chunks(index, pieces))
            if self._asked.includes_usage:
                await write(self._answers.usage_chunk())
            end = _event("[DONE]")
        except Refusal as e:
            self.final_status, end = e.status, _event(json.dumps(e.body()))
        await send({"type": "http.response.body", "body": end, "more_body": False})


def _event(data: str) -> bytes:
    return b"data: " + data.encode() + b"\n\n"


async def _collect(
    into: list[list[Piece]],
    first: tuple[int, list[Piece]],
    stream: AsyncIterator[tuple[int, list[Piece]]],
) -> None:
    into[first[0]] += first[1]
    async for index, pieces in stream:
        into[index] += pieces
