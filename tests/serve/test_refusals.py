"""What the server refuses: with which status, in OpenAI's shape, and that it goes on afterwards."""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import Iterator

import openai
import pytest
import tiny_text_models
from served import Server, head, response, serving

CHAT = "/v1/chat/completions"
GOOD = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "temperature": 0}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    options = ("--max-batch", "2", "--max-seq-len", "128", "--max-prompt", "100", "--max-answers", "3")
    with serving(tiny_text_models.talker(), *options, "--max-body", "200000") as found:
        yield found


@pytest.fixture(autouse=True)
def goes_on(server: Server) -> Iterator[None]:
    yield
    status, answer = server.post(CHAT, GOOD)
    assert status == 200 and answer["usage"]["completion_tokens"] == 2
    assert server.health()["pending"] == 0


def refused(server: Server, body: object, path: str = CHAT) -> tuple[int, dict]:
    status, answer = server.post(path, body)
    assert set(answer) == {"error"} and set(answer["error"]) == {"message", "type", "param", "code"}
    assert answer["error"]["message"]
    return status, answer["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe{}",
        b"[]",
        b'"text"',
        b"null",
        b'{"messages": NaN}',
        b'{"temperature": 1e999}',
        b'{"seed": ' + b"9" * 5000 + b"}",
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b"[" * 100_000,
        b'{"a":' * 20_000,
        b'{"messages": ' + b"[" * 200 + b"]" * 200 + b"}",
    ],
    ids=lambda body: repr(body[:24]),
)
def test_what_is_no_json_object_is_a_400(server, body):
    status, _ = refused(server, body)
    assert status == 400


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": ["Hi"]}, "messages[0]"),
        ({"messages": [{"content": "Hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "king", "content": "Hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"n": 4}, "n"),
        ({"n": 0}, "n"),
        ({"stop": 3}, "stop"),
        ({"stop": [""]}, "stop"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"seed": 1 << 64}, "seed"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": {"more": 1}}, "stream_options.more"),
        ({"logprobs": 2}, "logprobs"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {"100000": 1}}, "logit_bias"),
        ({"logit_bias": {"1": 101}}, "logit_bias"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tools": {"type": "function"}}, "tools"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": 3}}]},
            "tools[0].function.parameters",
        ),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "messages"),  # no place for them
        ({"tool_choice": "required"}, "tool_choice"),  # and there are no tools
        ({"tool_choice": "always"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
        ({"functions": [{"name": "f"}]}, "functions"),
        (
            {
                "messages": [
                    {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "x"}}]}
                ]
            },
            "messages[0].tool_calls",
        ),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 3}}}},
            "response_format",
        ),
        ({"no_such_parameter": 1}, "no_such_parameter"),
        ({"model": 3}, "model"),
    ],
)
def test_a_wrong_parameter_is_a_400_that_names_it(server, change, parameter):
    status, error = refused(server, {**GOOD, **change})
    assert (status, error["param"], error["type"]) == (400, parameter, "invalid_request_error")


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": [["Hi"]]}, "prompt"),
        ({"prompt": [[100_000]]}, "prompt"),
        ({"prompt": [[-1]]}, "prompt"),
        ({"prompt": ["a", "b"], "n": 2}, "n"),
        ({"prompt": "a", "best_of": 2}, "best_of"),
        ({"prompt": "a", "suffix": "b"}, "suffix"),
        ({"prompt": "a", "echo": True, "logprobs": 1}, "echo"),
    ],
)
def test_a_wrong_completion_is_a_400(server, body, parameter):
    status, error = refused(server, body, "/v1/completions")
    assert (status, error["param"]) == (400, parameter)


def test_random_json_is_never_a_500(server):
    rng = random.Random(0)
    names = [
        "messages",
        "model",
        "n",
        "stop",
        "stream",
        "temperature",
        "logit_bias",
        "response_format",
        "seed",
    ]
    values = [None, True, 0, -1, 1.5, "", "x", [], {}, [None], [[]], {"type": 1}, {"role": []}, 1 << 70]
    for _ in range(100):
        body = {name: rng.choice(values) for name in rng.sample(names, 4)}
        status, _ = server.post(CHAT, body)
        assert status in (400, 404), body


def test_a_prompt_that_is_too_long_is_a_400_of_its_own(server):
    status, error = refused(server, {**GOOD, "messages": [{"role": "user", "content": "x" * 120}]})
    assert (status, error["code"], error["param"]) == (400, "context_length_exceeded", "messages")


def test_other_models_and_places_are_a_404(server):
    assert refused(server, {**GOOD, "model": "gpt-4"})[1]["code"] == "model_not_found"
    assert refused(server, {}, "/v1/nothing")[0] == 404
    assert refused(server, {"input": "x"}, "/v1/embeddings")[0] == 404


def test_methods_and_kinds_of_content_are_checked(server):
    assert server.ask("GET", CHAT)[0] == 405
    assert server.ask("POST", "/health")[0] == 405
    assert server.ask("POST", CHAT, json.dumps(GOOD).encode(), content_type="text/plain")[0] == 415


def test_a_page_whose_name_leads_here_is_refused(server):
    with server.connect() as connection:
        connection.sendall(head("GET", "/v1/models", {}).replace(b"host: localhost", b"host: evil.example"))
        assert response(connection)[0] == 403


def sent_until_refused(connection: socket.socket, total: int) -> int:
    """How many bytes of a body went out before the connection was closed."""
    sent, part = 0, b" " * (1 << 16)
    try:
        while sent < total:
            sent += connection.send(part)
    except (BrokenPipeError, ConnectionResetError):
        pass
    return sent


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_of_100_mb_is_refused_before_it_is_read(server, is_chunked):
    before, total = server.memory(), 100 << 20
    how = {"transfer-encoding": "chunked"} if is_chunked else {"content-length": str(total)}
    with server.connect() as connection:
        connection.sendall(head("POST", CHAT, {"content-type": "application/json", **how}))
        if is_chunked:
            connection.sendall(f"{total:x}\r\n".encode())
        sent = sent_until_refused(connection, total)
    assert sent < total // 2  # what lies in the buffers of sockets
    assert server.memory() - before < 20 << 20


def test_a_body_that_is_announced_too_large_is_a_413(server):
    with server.connect() as connection:
        how = {"content-type": "application/json", "content-length": str(100 << 20)}
        connection.sendall(head("POST", CHAT, how))
        status, body = response(connection)
    assert status == 413 and json.loads(body)["error"]["code"] == "body_too_large"


def test_what_is_no_http_is_refused(server):
    for data in (
        b"\0" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/models HTTP/1.1\r\ncontent-length: x\r\n\r\n",
    ):
        with server.connect() as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            assert b"200" not in connection.recv(100)


def test_a_key_is_asked_for():
    with serving(tiny_text_models.talker(), "--max-seq-len", "64", "--api-key", "s3cret") as server:
        with pytest.raises(openai.AuthenticationError):
            server.client(api_key="wrong").models.list()
        assert server.ask("GET", "/v1/models")[0] == server.ask("GET", "/metrics")[0] == 401
        assert server.ask("POST", CHAT, json.dumps(GOOD).encode())[0] == 401
        assert server.health()["status"] == "ok"
        client = server.client(api_key="s3cret")
        assert client.chat.completions.create(model="tiny", **GOOD).usage.completion_tokens == 2


def test_a_full_queue_is_a_429():
    with serving(tiny_text_models.talker(), "--max-batch", "1", "--max-queue", "1") as server:
        with pytest.raises(openai.RateLimitError) as error:
            server.client().chat.completions.create(model="tiny", **GOOD, n=3)
        assert error.value.code == "queue_full" and error.value.response.headers["retry-after"] == "1"
        assert server.post(CHAT, {**GOOD, "n": 2})[0] == 200


def test_an_answer_that_takes_too_long_is_a_504():
    with serving(tiny_text_models.talker(), "--max-batch", "1", "--time", "0.001") as server:
        for stream in (False, True):
            status, error = refused(server, {**GOOD, "stream": stream})  # compiling takes longer
            assert (status, error["code"]) == (504, "timeout")
        assert is_idle_soon(server)


def is_idle_soon(server: Server) -> bool:
    for _ in range(300):
        if server.health()["pending"] == 0:
            return True
        time.sleep(0.1)
    return False
