"""The comments of the generated JavaScript API speak of JavaScript."""

from __future__ import annotations

import re

import pytest
from javascript_hosts import ROOT

GENERATED = ROOT / "wasm_runtime" / "src" / "api" / "generated"

# Words that mean something in Python alone.
PYTHON = re.compile(
    r"\b(None|True|False|self|tuples?|dicts?|kwargs|ints?|isinstance|Raises|OverflowError_|__\w+__)\b"
    r"|`with |`@\w|\w=(None|True|False|true|false|null)\b|\blambda\b| // |\(\w+,\)"
)


def comments(source: str) -> list[str]:
    return re.findall(r"/\*\*.*?\*/", source, re.DOTALL)


@pytest.mark.parametrize("name", ["errors.ts", "nn.ts", "tensor.ts"])
def test_comments_have_no_words_of_python(name: str) -> None:
    source = (GENERATED / name).read_text(encoding="utf-8")
    found = comments(re.sub(r"```js.*?```", "", source, flags=re.DOTALL))  # code is run by test_examples.py
    assert len(found) > 10
    assert [c for c in found if PYTHON.search(c)] == []


def test_names_in_comments_are_those_of_javascript() -> None:
    text = "\n".join(comments((GENERATED / "tensor.ts").read_text(encoding="utf-8")))
    assert "`ignoreIndex`" in text and "ignore_index" not in text
    assert "`requiresGrad: true`" in text and "requires_grad=" not in text
    code = "\n".join(comments((GENERATED / "nn.ts").read_text(encoding="utf-8")))
    assert "new LinearLR(optimizer, 0.1, { totalIters: 100 });" in code


@pytest.mark.parametrize(
    "text", ["None: all", "`with Tensor.train():`", "keepdim=True", "n // 2", "of shape (n,)", "self + x"]
)
def test_a_word_of_python_is_noticed(text: str) -> None:
    assert PYTHON.search(text)
