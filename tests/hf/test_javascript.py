"""The JavaScript libraries in plain Node, with what Python sends them: the same ids and the same text as CPython's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hf_tokenizers import KINDS, special_tokens, strings, trained

from polygrad.errors import ModelError
from polygrad.hf.added_tokens import SectionedBackend
from polygrad.hf.javascript_form import javascript_form
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
