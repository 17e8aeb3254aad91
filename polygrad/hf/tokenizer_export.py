"""A tokenizer as one file of an exported model, for Python and for JavaScript.

JSON: the fields of `TokenizerFiles`, of which `tokenizer` is the checked data of tokenizer.json; the
templates of special tokens around a text, `single` and `pair` (see `post_processing.py`); and `javascript`,
which has what `@huggingface/tokenizers` reads in the place of normalizer, pre-tokenizer and the model's
settings (see `javascript_form.py`). `wasm_runtime/src/text/` reads it without Python.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from polygrad.errors import ModelError
from polygrad.hf.javascript_form import javascript_form
from polygrad.hf.post_processing import TemplatePiece
from polygrad.hf.tokenizer import Tokenizer
from polygrad.hf.tokenizer_files import TokenizerFiles
from polygrad.hf.tokenizer_json import check_tokenizer, parse_object

FILE = "tokenizer.json"


def tokenizer_file(tokenizer: Tokenizer, for_javascript: bool) -> bytes:
    """The file. Raises ModelError for what the JavaScript library cannot do, if it is for that."""
    files = tokenizer.files
    values: dict[str, Any] = {f.name: getattr(files, f.name) for f in dataclasses.fields(files)}
    values["tokenizer"] = files.tokenizer.data
    for name in ("single", "pair"):
        values[name] = [_piece(piece) for piece in getattr(tokenizer.post, name)]
    if for_javascript:
        form = javascript_form(files.tokenizer, files.file)
        parts = ("normalizer", "pre_tokenizer")
        model = {k: v for k, v in form["model"].items() if k not in ("vocab", "merges")}
        values["javascript"] = {"model": model, **{name: form[name] for name in parts}}
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def read_tokenizer(data: bytes) -> Tokenizer:
    """The tokenizer in a file that `tokenizer_file` wrote. Raises ModelError when it is damaged."""
    values = parse_object(data, FILE)
    try:
        checked = check_tokenizer(values["tokenizer"], values["file"])
        fields = {f.name: values[f.name] for f in dataclasses.fields(TokenizerFiles)}
        files = TokenizerFiles(**{**fields, "tokenizer": checked, "end_ids": tuple(values["end_ids"])})
    except (KeyError, TypeError, AttributeError) as e:
        raise ModelError(f"{FILE}: expected a tokenizer as exported models have it ({e})") from e
    return Tokenizer.from_files(files)


def _piece(piece: TemplatePiece) -> dict[str, Any]:
    return {"ids": piece.ids, "sequence": piece.sequence}
