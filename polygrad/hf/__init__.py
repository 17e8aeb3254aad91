"""Models as HuggingFace's hub keeps them: tokenizers and chat templates.

    from polygrad.hf import Tokenizer
    tokenizer = Tokenizer("path/of/a/folder")
    ids = tokenizer.encode("Hello!")

Under CPython this stands on the packages `tokenizers` and `jinja2` (`pip install 'polygrad[hf]'`), inside of
Pyodide on JavaScript's `@huggingface/tokenizers` and `@huggingface/jinja`, which polygrad's npm package
brings. `tokenizer_files.py` reads what there is, `tokenizer_json.py` checks it, `backend.py` chooses the
library.
"""

from __future__ import annotations

from polygrad.hf.backend import prepare
from polygrad.hf.tokenizer import Batch, Tokenizer, TokenStream

__all__ = ["Batch", "TokenStream", "Tokenizer", "prepare"]
