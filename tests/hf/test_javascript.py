"""The JavaScript libraries in plain Node, with what Python sends them: the same ids and the same text as
CPython's.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hf_templates import HOSTILE, TEMPLATES, conversations
from hf_tokenizers import KINDS, special_tokens, strings, trained

from polygrad.errors import ModelError
from polygrad.hf.added_tokens import SectionedBackend
from polygrad.hf.chat import plain_messages, render_chat
from polygrad.hf.javascript_form import javascript_form, variables_json
from polygrad.hf.tokenizer_json import check_tokenizer

ROOT = Path(__file__).resolve().parent.parent.parent
BUNDLER = ROOT / "node_modules" / ".bin" / "esbuild"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        not BUNDLER.exists(), reason="needs the JavaScript packages: `make test` installs them"
    ),
]


class Hub:
    """Calls of `loader/src/hub.ts` in a Node of its own."""

    def __init__(self, bundle: Path) -> None:
        self._node = subprocess.Popen(
            ["node", str(Path(__file__).parent / "hub_server.mjs"), str(bundle)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def call(self, *request: Any) -> Any:
        assert self._node.stdin and self._node.stdout
        self._node.stdin.write(json.dumps(request) + "\n")
        self._node.stdin.flush()
        answer = json.loads(self._node.stdout.readline())
        if "error" in answer:
            raise ModelError(answer["error"])
        return answer["value"]

    def normalize(self, text: str) -> str:
        return str(self.call("normalize", text))

    def encode(self, text: str, first: bool) -> list[int]:
        return list(self.call("encode", text, first))

    def close(self) -> None:
        assert self._node.stdin
        self._node.stdin.close()
        self._node.wait(20)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    bundle = tmp_path_factory.mktemp("hub") / "hub.mjs"
    source = ROOT / "loader" / "src" / "hub.ts"
    command = [
        str(BUNDLER),
        str(source),
        "--bundle",
        "--format=esm",
        "--platform=node",
        f"--outfile={bundle}",
    ]
    subprocess.run([*command, "--log-level=error"], check=True)
    made = Hub(bundle)
    yield made
    made.close()


def open_sections(hub: Hub, data: dict[str, Any]) -> SectionedBackend:
    checked = check_tokenizer(data)
    hub.call("open", json.dumps(javascript_form(checked, "tokenizer.json")))
    return SectionedBackend(checked.data["added_tokens"], hub)


@pytest.mark.parametrize("kind", KINDS)
def test_the_javascript_library_finds_the_same_tokens_in_2000_strings(kind: str, hub: Hub) -> None:
    judge, _ = trained(kind)
    backend = open_sections(hub, json.loads(judge.backend_tokenizer.to_str()))
    for text in strings(2000, special_tokens(judge)):
        assert backend.encode(text) == judge.encode(text, add_special_tokens=False), repr(text)


@pytest.mark.parametrize("family", TEMPLATES)
def test_the_javascript_library_writes_the_same_conversations(family: str, hub: Hub) -> None:
    def render(messages: Any, **arguments: Any) -> str:
        variables = {"bos_token": "<s>", "eos_token": "</s>", "messages": messages, **arguments}
        return str(hub.call("render", TEMPLATES[family], variables_json(variables, "chat")))

    rendered = 0
    for conversation in conversations(400):
        messages = plain_messages(conversation.pop("messages"))
        special = {"bos_token": "<s>", "eos_token": "</s>"}
        try:
            expected = render_chat(TEMPLATES[family], messages, special=special, **conversation)
        except ModelError:
            with pytest.raises(ModelError):
                render(messages, **conversation)
            continue
        try:
            text = render(messages, **conversation)
        except ModelError as e:
            # What it cannot do, it refuses: a list or dict as Python writes it; that a dict is iterable.
            known = ("trim of ArrayValue", "Invalid content type", "Unknown ObjectValue filter: string")
            assert str(e) in known
            continue
        assert text == expected
        rendered += 1
    assert rendered > 100


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_is_an_error_in_javascript_too(name: str, hub: Hub) -> None:
    variables = {"messages": [{"role": "user", "content": "Hi"}]}
    try:
        text = hub.call("render", HOSTILE[name], json.dumps(variables))
    except ModelError:
        return
    assert len(text) <= 8_000_000 and "root:" not in text


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ({"b": 1, "1": 2}, "an object with a number for a name"),
        (2.0, "the float 2.0"),
        (1e-7, "the float 1e-07"),
        (1 << 60, "the integer 1152921504606846976"),
    ],
)
def test_values_that_javascript_writes_otherwise_are_refused(value: Any, match: str) -> None:
    with pytest.raises(ModelError, match=f"^chat: {match}.* is not supported by the JavaScript libraries"):
        variables_json({"messages": [{"content": [value]}]}, "chat")
