"""Answers of the server, asked by openai's package, are those of `LanguageModel.generate`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import openai
import pytest
import tiny_text_models
from served import Server, serving

from polygrad import hf

HELLO = [{"role": "user", "content": "Hello"}]
LENGTH = 192


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(tiny_text_models.talker(), "--max-batch", "4", "--max-seq-len", str(LENGTH)) as found:
        yield found


@pytest.fixture(scope="module")
def model() -> hf.LanguageModel:
    found = hf.load_hf(tiny_text_models.talker(), max_seq_len=LENGTH)
    assert isinstance(found, hf.LanguageModel)
    return found


def chat(server: Server, **options):
    return server.client().chat.completions.create(
        **{"model": "tiny", "messages": HELLO, "max_tokens": 12, "seed": 1, **options}
    )


def test_models_are_listed(server):
    client = server.client()
    assert [m.id for m in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").owned_by == "polygrad"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other/name")


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ({"temperature": 0}, {"temperature": 0.0}),
        ({}, {"temperature": 1.0}),
        ({"temperature": 0.7, "top_p": 0.8}, {"temperature": 0.7, "top_p": 0.8}),
        ({"seed": -3}, {"temperature": 1.0, "seed": (1 << 64) - 3}),
        ({"logit_bias": {"70": 100}}, {"temperature": 1.0, "logit_bias": {70: 100.0}}),
        (
            {"temperature": 0, "presence_penalty": 1.5, "frequency_penalty": 0.5},
            {"temperature": 0.0, "presence_penalty": 1.5, "frequency_penalty": 0.5},
        ),
        ({"extra_body": {"top_k": 3, "min_p": 0.1}}, {"temperature": 1.0, "top_k": 3, "min_p": 0.1}),
    ],
)
def test_a_chat_is_answered_as_generate_answers(server, model, asked, options):
    answer = chat(server, **asked)
    expected = model.generate(HELLO, **{"max_new_tokens": 12, "seed": 1, **options})
    assert answer.choices[0].message.content == expected.text
    assert answer.choices[0].finish_reason == expected.finish_reason
    assert answer.usage.prompt_tokens == expected.prompt_tokens
    assert answer.usage.completion_tokens == len(expected.tokens)


def test_parts_of_text_and_developers_are_messages(server, model):
    messages = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]},
    ]
    expected = model.generate(
        [{"role": "system", "content": "Be kind."}, *HELLO], max_new_tokens=12, seed=1, temperature=1.0
    )
    assert chat(server, messages=messages).choices[0].message.content == expected.text


def test_several_choices_are_those_of_following_seeds(server, model):
    answer = chat(server, n=3)
    expected = model.generate(HELLO, max_new_tokens=12, seed=1, temperature=1.0, n=3)
    assert [c.message.content for c in answer.choices] == [e.text for e in expected]
    assert [c.index for c in answer.choices] == [0, 1, 2]
    assert answer.usage.prompt_tokens == expected[0].prompt_tokens


def test_a_stream_is_the_answer_in_pieces(server):
    whole = chat(server, n=2)
    texts, roles, reasons = ["", ""], [[], []], [[], []]
    chunks = list(chat(server, n=2, stream=True, stream_options={"include_usage": True}))
    for chunk in chunks[:-1]:
        (choice,) = chunk.choices
        assert chunk.usage is None
        texts[choice.index] += choice.delta.content or ""
        roles[choice.index] += [choice.delta.role] if choice.delta.role else []
        reasons[choice.index] += [choice.finish_reason] if choice.finish_reason else []
    assert texts == [c.message.content for c in whole.choices]
    assert roles == [["assistant"], ["assistant"]]
    assert reasons == [[c.finish_reason] for c in whole.choices]
    assert chunks[-1].choices == [] and chunks[-1].usage == whole.usage
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_stream_without_usage_says_none(server):
    assert all(chunk.usage is None for chunk in chat(server, stream=True))


def test_stop_strings_end_answers_and_are_no_part_of_them(server, model):
    text = model.generate(HELLO, max_new_tokens=12, seed=1, temperature=1.0).text
    stop = text[6:8]
    for stream in (False, True):
        answer = chat(server, stop=[stop, "never there"], stream=stream)
        if stream:
            chunks = list(answer)
            got = "".join(c.choices[0].delta.content or "" for c in chunks)
            reason = chunks[-1].choices[0].finish_reason
        else:
            got, reason = answer.choices[0].message.content, answer.choices[0].finish_reason
        assert (got, reason) == (text[: text.index(stop)], "stop")


def test_log_probabilities_are_those_of_the_model_within_1e_4(server, model):
    expected = model.generate(HELLO, max_new_tokens=12, seed=1, temperature=1.0, log_probabilities=3)
    answer = chat(server, logprobs=True, top_logprobs=3)
    streamed = [c.choices[0].logprobs for c in chat(server, logprobs=True, top_logprobs=3, stream=True)]
    pieces = [entry for logs in streamed if logs is not None for entry in logs.content]
    for entries in (answer.choices[0].logprobs.content, pieces):
        assert len(entries) == len(expected.logs) == 12
        for entry, token, log in zip(entries, expected.tokens, expected.logs, strict=True):
            assert entry.token == model.tokenizer.decode([token], skip_special_tokens=False)
            assert math.isclose(entry.logprob, log.log_probability, abs_tol=1e-4)
            assert np.allclose([t.logprob for t in entry.top_logprobs], list(log.top.values()), atol=1e-4)
            assert entry.bytes in (None, list(entry.token.encode()))


def test_an_answer_follows_a_json_schema(server):
    pytest.importorskip("llguidance", reason="grammars need it")
    schema = {
        "type": "object",
        "properties": {"a": {"enum": ["red", "blue"]}, "b": {"type": "boolean"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    format_ = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
    answer = chat(server, response_format=format_, max_tokens=100)
    value = json.loads(answer.choices[0].message.content)
    assert set(value) == {"a", "b"} and value["a"] in ("red", "blue") and isinstance(value["b"], bool)


def test_completions_of_text_and_of_tokens(server, model):
    client = server.client()
    texts = ["Shall I", "Thou"]
    expected = [model.generate(t, max_new_tokens=6, seed=1, temperature=1.0).text for t in texts]
    tokens = [model.tokenizer.encode(text) for text in texts]
    for prompt in (texts, tokens):
        answer = client.completions.create(model="tiny", prompt=prompt, max_tokens=6, seed=1)
        assert [c.text for c in answer.choices] == expected
        assert answer.usage.prompt_tokens == sum(map(len, tokens))
    one = client.completions.create(model="tiny", prompt=tokens[0], max_tokens=6, seed=1, echo=True)
    assert [c.text for c in one.choices] == [texts[0] + expected[0]]
    stream = client.completions.create(
        model="tiny", prompt=texts[0], max_tokens=6, seed=1, echo=True, stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in stream) == texts[0] + expected[0]


def test_completions_have_log_probabilities(server, model):
    answer = server.client().completions.create(
        model="tiny", prompt="Shall I", max_tokens=6, seed=1, logprobs=2
    )
    expected = model.generate("Shall I", max_new_tokens=6, seed=1, temperature=1.0, log_probabilities=2)
    logs = answer.choices[0].logprobs
    assert np.allclose(logs.token_logprobs, [log.log_probability for log in expected.logs], atol=1e-4)
    assert logs.text_offset == np.cumsum([0, *map(len, logs.tokens)])[:-1].tolist()


def test_answers_end_where_the_room_ends(server):
    answer = chat(server, max_tokens=100_000, temperature=0, logit_bias={"2": -100})  # never ends by itself
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.total_tokens == LENGTH


def test_without_a_seed_answers_differ(server):
    answers = {chat(server, seed=None, max_tokens=16).choices[0].message.content for _ in range(4)}
    assert len(answers) > 1


@pytest.mark.slow
def test_64_clients_at_once_get_what_each_would_get_alone(server, model):
    """Some stream, some do not; prompts are of all lengths, and all sample in their own way."""

    def options(i: int) -> dict:
        return {
            "messages": [{"role": "user", "content": f"{i} " * (1 + i % 20)}],
            "max_tokens": 4 + i % 23,
            "seed": i,
            "temperature": (0.0, 0.6, 1.0)[i % 3],
        }

    def text(i: int) -> str:
        if i % 2:
            return chat(server, **options(i)).choices[0].message.content
        return "".join(c.choices[0].delta.content or "" for c in chat(server, **options(i), stream=True))

    with ThreadPoolExecutor(64) as pool:
        got = list(pool.map(text, range(64)))
    for i, answer in enumerate(got):
        o = options(i)
        expected = model.generate(
            o["messages"], max_new_tokens=o["max_tokens"], seed=i, temperature=o["temperature"]
        )
        assert answer == expected.text, f"client {i}"
    assert server.health()["pending"] == 0


def test_metrics_count(server):
    before = [server.metric(name) for name in ("prompt_tokens_total", "answer_tokens_total")]
    usage = chat(server).usage
    after = [server.metric(name) for name in ("prompt_tokens_total", "answer_tokens_total")]
    assert [b - a for a, b in zip(before, after, strict=True)] == [
        usage.prompt_tokens,
        usage.completion_tokens,
    ]
    text = server.ask("GET", "/metrics")[1].decode()
    assert 'polygrad_requests_total{path="/v1/chat/completions",status="200"}' in text
    assert server.metric('first_token_seconds_bucket{le="+Inf"}') == server.metric(
        "first_token_seconds_count"
    )
    assert server.metric("waiting_answers") == server.metric("pending_answers") == 0
