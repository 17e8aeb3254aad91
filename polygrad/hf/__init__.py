"""Models as the HuggingFace hub keeps them: folders of a configuration, weights and a tokenizer.

from polygrad import hf
model = hf.load_hf("Qwen/Qwen2-0.5B-Instruct")
print(model.generate([{"role": "user", "content": "Why is the sky blue?"}]).text)
"""

from __future__ import annotations

from polygrad.generation.requests import Completion, Piece, Request
from polygrad.generation.sampling import Sampling
from polygrad.hf.download import download_hf
from polygrad.hf.instances import HFInstance, LanguageModel
from polygrad.hf.load import load_hf, load_hf_bytes
from polygrad.hf.tokenizer import Tokenizer

__all__ = [
    "Completion",
    "HFInstance",
    "LanguageModel",
    "Piece",
    "Request",
    "Sampling",
    "Tokenizer",
    "download_hf",
    "load_hf",
    "load_hf_bytes",
]
