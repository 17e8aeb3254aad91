"""Clients that leave, read slowly or not at all; a server that is told to stop; memory."""

from __future__ import annotations

import json
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
import tiny_text_models
from served import Server, head, response, serving

CHAT = "/v1/chat/completions"
# The token that ends an answer is never drawn: answers are as long as they may be.
ENDLESS = {"messages": [{"role": "user", "content": "Hi"}], "temperature": 0, "logit_bias": {"2": -100}}
SHORT = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3, "temperature": 0}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(tiny_text_models.talker(), "--max-batch", "2") as found:
        yield found


def asked(server: Server, body: dict, receive_buffer: int | None = None) -> socket.socket:
    """A connection on which a request was sent, and nothing read."""
    connection = socket.socket()
    connection.settimeout(60)
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.connect(server.address)
    data = json.dumps(body).encode()
    headers = {"content-type": "application/json", "content-length": str(len(data))}
    connection.sendall(head("POST", CHAT, headers) + data)
    return connection


def kill(connection: socket.socket) -> None:
    """As a process that is killed: the connection is reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def soon(holds: Callable[[], bool]) -> bool:
    for _ in range(600):
        if holds():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("leave", [kill, socket.socket.close])
def test_a_client_that_leaves_frees_its_place(server, leave, stream):
    names = ("disconnected_total", "answer_tokens_total")
    left, tokens = [server.metric(name) for name in names]
    connections = [asked(server, {**ENDLESS, "n": 16, "stream": stream}) for _ in range(8)]
    assert soon(lambda: server.metric("active_requests") == 8)
    if stream:
        assert connections[0].recv(1000).startswith(b"HTTP/1.1 200")
    for connection in connections:
        leave(connection)
    status, answer = server.post(CHAT, SHORT)
    assert status == 200 and answer["usage"]["completion_tokens"] == 3
    assert soon(lambda: server.health()["pending"] == 0)
    assert soon(lambda: server.metric("active_requests") == 0)
    # not one answer of the last client has begun by now, and none is made
    assert server.metric("disconnected_total") > left
    assert server.metric("answer_tokens_total") - tokens < 7 * 16 * 512


def test_openais_client_that_closes_a_stream_frees_its_place(server):
    stream = server.client().chat.completions.create(model="tiny", **ENDLESS, n=8, stream=True)
    next(iter(stream))
    stream.close()
    assert soon(lambda: server.health()["pending"] == 0)


def test_a_client_that_leaves_in_the_midst_of_its_body_is_forgotten(server):
    connection = server.connect()
    headers = {"content-type": "application/json", "content-length": "1000"}
    connection.sendall(head("POST", CHAT, headers) + b'{"messages"')
    assert soon(lambda: server.metric("active_requests") == 1)
    kill(connection)
    assert soon(lambda: server.metric("active_requests") == 0)


@pytest.mark.slow
def test_slow_readers_hold_nobody_up_and_get_all(server):
    # log-probabilities make streams longer than the buffers of sockets
    long = {**ENDLESS, "n": 8, "stream": True, "logprobs": True, "top_logprobs": 20}
    slow = [asked(server, long, receive_buffer=4096) for _ in range(3)]
    with slow[0], slow[1], slow[2]:
        assert soon(lambda: server.health()["pending"] > 0)
        assert soon(lambda: server.health()["pending"] == 0)  # all is computed, nothing was read
        assert server.post(CHAT, SHORT)[0] == 200
        for connection in slow:
            status, body = response(connection)
            assert status == 200 and b"data: [DONE]" in body
            assert body.count(b'"finish_reason": "length"') == 8


def test_a_stop_lets_answers_end_and_takes_no_new_ones():
    with serving(tiny_text_models.talker(), "--max-batch", "2") as server:
        server.post(CHAT, SHORT)
        running = asked(server, {**ENDLESS, "max_tokens": 300, "stream": True})
        assert running.recv(1, socket.MSG_PEEK) == b"H"  # the first piece is there
        server.process.send_signal(signal.SIGTERM)
        assert soon(lambda: not can_connect(server))
        _, body = response(running)
        assert b"data: [DONE]" in body and b'"length"' in body
        assert server.process.wait(30) == 0
        running.close()


def test_a_stop_ends_what_takes_longer_than_its_limit():
    with serving(tiny_text_models.talker(), "--max-batch", "1", "--stop-time", "0") as server:
        streamed = asked(server, {**ENDLESS, "n": 16, "stream": True})
        assert streamed.recv(1, socket.MSG_PEEK) == b"H"
        whole = asked(server, {**ENDLESS, "n": 16})
        assert soon(lambda: server.health()["pending"] > 16)
        server.process.send_signal(signal.SIGTERM)
        assert b'"code": "stopping"' in response(streamed)[1]
        status, body = response(whole)
        assert status == 503 and json.loads(body)["error"]["code"] == "stopping"
        assert server.process.wait(30) == 0
        streamed.close()
        whole.close()


def can_connect(server: Server) -> bool:
    try:
        server.connect().close()
    except OSError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_memory_after_2000_requests_is_where_it_was_within_16_mib():
    with serving(tiny_text_models.talker(), "--max-batch", "8", "--max-seq-len", "128") as server:

        def ask(i: int) -> None:
            client = server.client()
            kind = i % 5
            options = {**SHORT, "seed": i, "temperature": 1.0, "max_tokens": 2 + i % 11}
            options["messages"] = [{"role": "user", "content": f"{i} " * (1 + i % 15)}]
            if kind == 0:
                client.chat.completions.create(model="tiny", **options, logprobs=True, top_logprobs=3)
            elif kind == 1:
                list(client.chat.completions.create(model="tiny", **options, stream=True, n=2))
            elif kind == 2:
                next(iter(client.chat.completions.create(model="tiny", **options, stream=True)))
            elif kind == 3:
                with pytest.raises(openai.BadRequestError):
                    client.chat.completions.create(model="tiny", **{**options, "max_tokens": -1})
            else:
                client.completions.create(model="tiny", prompt="x" * (1 + i % 90), max_tokens=3, stop="y")
            client.close()

        def ask_all(first: int, count: int) -> int:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(ask, range(first, first + count)))
            assert soon(lambda: server.health()["pending"] == 0)
            return server.memory()

        before = ask_all(0, 600)  # by now every Program is compiled
        after = ask_all(600, 2000)
        assert after - before < 16 << 20, f"{before >> 20} MiB became {after >> 20}"
