"""Selects the library that tokenizes: the package `tokenizers`, or `@huggingface/tokenizers` in Pyodide.

Everything else, from special tokens around a text to decoding, is done by this package, the same on every
host.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Protocol

from polygrad.errors import ModelError
from polygrad.hf.tokenizer_json import TokenizerJson


class TokenizerBackend(Protocol):
    """One tokenizer of a library."""

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, which has no surrogates, without special tokens around it. Raises ModelError."""


class Templates(Protocol):
    """Renders chat templates, within limits of time and memory."""

    def render(self, template: str, variables: dict[str, object], where: str) -> str:
        """Render a template with `variables`, which are plain JSON. Raises ModelError, which begins with
        `where`."""


def open_backend(tokenizer: TokenizerJson, file: str) -> TokenizerBackend:
    """Open this host's library with `tokenizer`, read from `file`. Raises ModelError."""
    backend: TokenizerBackend = _host_module("tokenizers").open_backend(tokenizer, file)
    return backend


def open_templates() -> Templates:
    """The template renderer of this host. Raises ModelError when there is none."""
    templates: Templates = _host_module("templates").open_templates()
    return templates


# The modules of each host, and the package that the one of CPython needs.
_MODULES = {
    "tokenizers": ("polygrad.hf.native_tokenizers", "polygrad.hf.javascript", "tokenizers"),
    "templates": ("polygrad.hf.native_templates", "polygrad.hf.javascript", "jinja2"),
}


def _host_module(what: str) -> Any:
    native, javascript, package = _MODULES[what]
    is_page = sys.platform == "emscripten"
    try:
        return importlib.import_module(javascript if is_page else native)
    except ImportError as e:
        if is_page:
            raise ModelError(
                "polygrad.hf: expected the JavaScript packages of polygrad's loader, got a Python that "
                "something else started: start it with polygrad's npm package"
            ) from e
        raise ModelError(
            f"polygrad.hf: expected the package {package!r}, which is not installed: "
            "pip install 'polygrad[hf]'"
        ) from e


async def prepare() -> None:
    """Load the JavaScript libraries. Only needed in a page whose engine cannot suspend Python.

    Other pages load them when a `Tokenizer` is made. Raises ModelError when they cannot be loaded.
    """
    if sys.platform == "emscripten":
        await _host_module("tokenizers").prepare()
