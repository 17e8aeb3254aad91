"""JavaScript's `@huggingface/tokenizers` and `@huggingface/jinja`, for Pyodide: a thin wrapper of
`loader/src/hub.ts`.

polygrad's loaders register the function that opens them in the JavaScript module `polygrad_host`. Importing
this module without that function raises ImportError. The bundle is loaded on first use: in Node
synchronously; in a page by a promise, for which Python is suspended if the engine supports it. Else `prepare`
must be awaited before.
"""

from __future__ import annotations

import json
from typing import Any

from polygrad_host import loadHub
from pyodide.ffi import JsException, can_run_sync, run_sync

from polygrad.errors import ModelError
from polygrad.hf.added_tokens import SectionedBackend
from polygrad.hf.javascript_form import javascript_form, variables_json
from polygrad.hf.tokenizer_json import TokenizerJson


def _libraries() -> Any:
    """The bundle. Raises ModelError if Python cannot wait for it."""
    libraries = loadHub()
    if not hasattr(libraries, "then"):
        return libraries
    if not can_run_sync():
        raise ModelError(
            "polygrad.hf: expected a call that may wait for the JavaScript libraries, got one that "
            "JavaScript made at once: `await polygrad.hf.prepare()` before"
        )
    return run_sync(libraries)


async def prepare() -> None:
    """Load the bundle before its first use."""
    loading = loadHub()
    if hasattr(loading, "then"):
        await loading


def open_backend(tokenizer: TokenizerJson, file: str) -> SectionedBackend:
    """Raises ModelError for what the library does not support, or refuses."""
    text = json.dumps(javascript_form(tokenizer, file), ensure_ascii=False)
    try:
        text.encode()
        made = _libraries().HubTokenizer.new(text)
    except UnicodeEncodeError as e:
        raise ModelError(f"{file}: a lone surrogate, {text[e.start]!r}, which is not text") from None
    except JsException as e:
        raise ModelError(f"{file}: refused by @huggingface/tokenizers: {e.message}") from e
    return SectionedBackend(tokenizer.data["added_tokens"], _JsLibrary(made, file))


class _JsLibrary:
    """A `HubTokenizer`."""

    def __init__(self, made: Any, file: str) -> None:
        self._normalize, self._encode, self._file = made.normalize.bind(made), made.encode.bind(made), file

    def normalize(self, text: str) -> str:
        return str(self._call(self._normalize, text))

    def encode(self, text: str, first: bool) -> list[int]:
        return list(self._call(self._encode, text, first).to_py())

    def _call(self, function: Any, text: str, *args: Any) -> Any:
        try:
            return function(text, *args)
        except JsException as e:
            raise ModelError(
                f"{self._file}: @huggingface/tokenizers failed on {text[:40]!r}: {e.message}"
            ) from e


class JsTemplates:
    """Templates by `@huggingface/jinja`."""

    def render(self, template: str, variables: dict[str, object], where: str) -> str:
        text = variables_json(variables, where)
        try:
            return str(_libraries().renderTemplate(template, text))
        except JsException as e:
            raise ModelError(f"{where}: {e.message}") from e


def open_templates() -> JsTemplates:
    return JsTemplates()
