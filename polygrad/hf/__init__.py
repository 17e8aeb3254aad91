"""Models in the format of HuggingFace's hub: folders with a configuration, weights and a tokenizer.

    from polygrad import hf
    model = hf.load_hf("Qwen/Qwen2-0.5B-Instruct")
    print(model.generate([{"role": "user", "content": "Why is the sky blue?"}]).text)

Text needs `pip install 'polygrad[hf]'`: under CPython tokenizers use the packages `tokenizers` and `jinja2`,
in Pyodide JavaScript's `@huggingface/tokenizers` and `@huggingface/jinja`, which polygrad's npm package
contains. `tokenizer_files.py` reads a tokenizer's files, `tokenizer_json.py` checks them, `backend.py`
selects the library.
"""

from __future__ import annotations

from polygrad.generation.requests import Completion, Piece, Request
from polygrad.generation.sampling import Sampling
from polygrad.hf.backend import prepare
from polygrad.hf.download import download_hf
from polygrad.hf.image_classifiers import ImageClassifier
from polygrad.hf.image_text import ImageTextMatcher
from polygrad.hf.instances import HFInstance, LanguageModel
from polygrad.hf.load import from_config, load_hf, load_hf_bytes
from polygrad.hf.sequence_to_sequence import SequenceToSequence
from polygrad.hf.speech import SpeechRecognizer
from polygrad.hf.text_encoders import Filling, MaskedLanguageModel, TextClassifier, TextEncoder
from polygrad.hf.tokenizer import Batch, Tokenizer, TokenStream
from polygrad.hf.tool_calls import ToolCall, ToolCallStream, read_tool_calls

__all__ = [
    "Batch",
    "Completion",
    "Filling",
    "HFInstance",
    "ImageClassifier",
    "ImageTextMatcher",
    "LanguageModel",
    "MaskedLanguageModel",
    "Piece",
    "Request",
    "Sampling",
    "SequenceToSequence",
    "SpeechRecognizer",
    "TextClassifier",
    "TextEncoder",
    "TokenStream",
    "Tokenizer",
    "ToolCall",
    "ToolCallStream",
    "download_hf",
    "from_config",
    "load_hf",
    "load_hf_bytes",
    "prepare",
    "read_tool_calls",
]
