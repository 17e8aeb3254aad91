"""Tokenizers and chat templates inside of Pyodide: the same ids and the same text as under CPython."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hf_templates import TEMPLATES
from hf_tokenizers import KINDS, special_tokens, strings, trained
from javascript_hosts import built, hosts, run

from polygrad.hf.chat import render_chat

pytestmark = [pytest.mark.e2e, built]
SCRIPT = Path(__file__).parent / "scripts" / "tokenizers.py"
COUNT = 300
MESSAGES = [
    {"role": "user", "content": "  Été 你好 🙂 "},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\n<b> & 'c' "},
    {"role": "user", "content": "{{ 7 * 7 }} </s>"},
]


@pytest.mark.parametrize("host", hosts("node"))
def test_every_host_has_the_ids_and_the_text_of_transformers(host: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {}
    expected: dict[str, Any] = {}
    for kind in KINDS:
        judge, folder = trained(kind)
        texts = [text for text in strings(COUNT, special_tokens(judge), seed=11) if text]
        given[kind] = [{path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}, texts]
        ids = [judge.encode(text) for text in texts]
        decoded = [judge.decode(row, skip_special_tokens=True) for row in ids]
        expected[kind] = [ids, decoded, decoded[-1], judge(*texts[-2:])["input_ids"]]
    templates = {family: [template, MESSAGES] for family, template in TEMPLATES.items()}
    data = tmp_path / "tokenizers.json"
    data.write_text(json.dumps({"tokenizers": given, "templates": templates}), encoding="utf-8")
    got = run(host, SCRIPT, data.name, files=(data,), cwd=tmp_path).json()
    assert got["platform"] == "emscripten"
    for kind in KINDS:
        assert got[kind] == expected[kind], kind
    for family, template in TEMPLATES.items():
        special = {"bos_token": "<s>", "eos_token": "</s>"}
        assert got[f"chat {family}"] == render_chat(template, MESSAGES, special=special)
    assert "the template takes too much" in got["refused"]
    assert got["unsupported"] == (
        "tokenizer.json: normalizer: the kind Nmt is not supported by the JavaScript libraries of a page"
    )
