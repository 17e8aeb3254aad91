"""Chat templates against `transformers`: the same text for generated conversations; and hostile ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hf_templates import HOSTILE, TEMPLATES, conversations
from hf_tokenizers import trained

from polygrad.errors import ArgumentError, ModelError
from polygrad.hf import Tokenizer
from polygrad.hf.chat import render_chat

COUNT = 400


def _outcome(call: Callable[..., Any], messages: Any, **arguments: Any) -> str:
    """The text, or that there is none."""
    try:
        return str(call(messages, **arguments))
    except Exception:
        return "(refused)"


@pytest.mark.parametrize("family", TEMPLATES)
def test_a_conversation_is_the_text_of_transformers(family: str) -> None:
    judge, folder = trained("llama2")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    tokenizer = Tokenizer({**files, "chat_template.jinja": TEMPLATES[family].encode()})
    rendered = 0
    for conversation in conversations(COUNT):
        messages = conversation.pop("messages")
        template = TEMPLATES[family]
        judged = _outcome(
            judge.apply_chat_template, messages, chat_template=template, tokenize=False, **conversation
        )
        assert _outcome(tokenizer.apply_chat_template, messages, **conversation) == judged, messages
        rendered += judged != "(refused)"
    assert rendered > COUNT // 4


def test_variables_reach_the_template() -> None:
    judge, folder = trained("llama2")
    tokenizer = Tokenizer(folder)
    messages = [{"role": "user", "content": "Hi"}]
    text = tokenizer.apply_chat_template(messages, template=TEMPLATES["chatml"], enable_thinking=False)
    assert text.endswith("<think>\n\n</think>\n\n")
    expected = judge.apply_chat_template(
        messages,
        chat_template=TEMPLATES["chatml"],
        tokenize=False,
        add_generation_prompt=True,
        enable_thinking=False,
    )
    assert text == expected


def test_a_date_and_marked_parts() -> None:
    messages = [{"role": "user", "content": "Hi"}]
    assert len(render_chat("{{ strftime_now('%Y-%m-%d') }}", messages)) == 10
    assert render_chat("{% generation %}{{ messages[0].content }}{% endgeneration %}!", messages) == "Hi!"
    assert (
        render_chat(
            "{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", messages
        )
        == "012"
    )


def test_templates_by_name() -> None:
    _, folder = trained("gpt2")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    pairs = b'[{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]'
    files["tokenizer_config.json"] = b'{"chat_template": ' + pairs + b"}"
    tokenizer = Tokenizer(files)
    messages = [{"role": "user", "content": "Hi"}]
    assert tokenizer.apply_chat_template(messages) == "D"
    assert tokenizer.apply_chat_template(messages, tools=[{"name": "f"}]) == "T"
    assert tokenizer.apply_chat_template(messages, template="tool_use") == "T"
    with pytest.raises(ModelError, match="expected a chat template 'rag', got default, tool_use"):
        tokenizer.apply_chat_template(messages, template="rag")
    with pytest.raises(ModelError, match=r"tokenizer.json: expected a chat template 'default', got none"):
        Tokenizer(folder).apply_chat_template(messages)


@pytest.mark.parametrize(
    ("messages", "match"),
    [
        ([], "expected a list of at least one message"),
        ("Hi", "expected a list of at least one message"),
        ([{"content": "Hi"}], r"messages\[0\]: expected a dict with a role"),
        ([{"role": "user", "content": object()}], r"messages\[0\].content: expected text, numbers"),
        ([{"role": "user", "content": [[b"x"]]}], r"messages\[0\].content\[0\]\[0\]: expected text"),
    ],
)
def test_what_is_no_conversation_is_refused(messages: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        render_chat("x", messages)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_is_an_error_that_names_it(name: str) -> None:
    with pytest.raises(ModelError, match="chat_template"):
        render_chat(HOSTILE[name], [{"role": "user", "content": "Hi"}])


def test_what_a_refused_template_says_is_in_the_error() -> None:
    with pytest.raises(ModelError, match=r"^chat_template: roles must alternate$"):
        render_chat(HOSTILE["refusal"], [{"role": "user", "content": "Hi"}])
    with pytest.raises(ModelError, match=r"^chat_template: line 2: "):
        render_chat("\n{% if %}", [{"role": "user", "content": "Hi"}])


def test_a_large_conversation_is_no_hostile_one() -> None:
    messages = [
        {"role": "user" if i % 2 == 0 else "assistant", "content": "word " * 100} for i in range(2001)
    ]
    for family in ("llama3", "chatml", "mistral", "gemma", "phi"):
        special = {"bos_token": "<s>", "eos_token": "</s>"}
        assert len(render_chat(TEMPLATES[family], messages, special=special)) > 1_000_000
