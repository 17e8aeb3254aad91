"""Vectors that the server gives, asked by openai's package, are those of `TextEncoder.embed`."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tiny_text_models
from served import Server, serving

from polygrad import hf

TEXTS = ["the cat sat", "a dog ran on the red mat .", "cat"]
PATH = "/v1/embeddings"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(tiny_text_models.embedder()[0], "--max-queue", "64") as found:
        yield found


def expected(texts: list[str]) -> np.ndarray:
    return hf.load_hf(tiny_text_models.embedder()[0]).embed(texts).numpy()


@pytest.mark.parametrize("encoding", ["float", "base64", None])
def test_vectors_are_those_of_embed_within_1e_6(server, encoding):
    options = {} if encoding is None else {"encoding_format": encoding}
    answer = server.client().embeddings.create(model="tiny", input=TEXTS, **options)
    vectors = [d.embedding for d in answer.data]
    if encoding == "base64":  # openai's package decodes only what it asked for itself
        vectors = [np.frombuffer(base64.b64decode(v), np.float32) for v in vectors]
    assert abs(np.array(vectors) - expected(TEXTS)).max() < 1e-6
    assert [d.index for d in answer.data] == [0, 1, 2] and answer.usage.prompt_tokens == 5 + 10 + 3


@pytest.mark.slow
def test_many_clients_get_their_own_vectors(server):
    def ask(i: int) -> list[float]:
        text = " ".join(["the", "cat", "dog", "mat"][j % 4] for j in range(1 + i % 9))
        return server.client().embeddings.create(model="tiny", input=text).data[0].embedding

    with ThreadPoolExecutor(16) as pool:
        got = list(pool.map(ask, range(48)))
    texts = [" ".join(["the", "cat", "dog", "mat"][j % 4] for j in range(1 + i % 9)) for i in range(48)]
    assert abs(np.array(got) - expected(texts)).max() < 1e-5
    assert server.health()["pending"] == 0


@pytest.mark.parametrize(
    "body",
    [{}, {"input": ""}, {"input": []}, {"input": [""]}, {"input": [[99]]}, {"input": 3},
     {"input": "cat " * 99}, {"input": "cat", "dimensions": 8}, {"input": "cat", "encoding_format": "hex"}],
    ids=lambda body: repr(body)[:40],
)  # fmt: skip
def test_what_cannot_be_embedded_is_a_400(server, body):
    status, answer = server.post(PATH, body)
    assert status == 400 and answer["error"]["param"] in ("input", "dimensions", "encoding_format")


def test_an_encoder_does_not_write(server):
    status, answer = server.post("/v1/completions", {"prompt": "x"})
    assert status == 404 and answer["error"]["code"] == "model_not_supported"
