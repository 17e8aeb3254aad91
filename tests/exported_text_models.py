"""Small exported models that read and write text, and what the Instances that they are made of give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf_models
import hf_models
import tiny_text_models

from polygrad import hf

# By name: options of sampling.
SAMPLINGS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "all": {"temperature": 1.0, "seed": 3},
    "top_k": {"temperature": 0.8, "top_k": 5, "seed": (1 << 63) + 5},
    "top_p and repetition": {"temperature": 1.2, "top_p": 0.9, "seed": 5, "repetition_penalty": 1.3},
    "penalties and bias": {
        "presence_penalty": 0.5,
        "frequency_penalty": 0.2,
        "logit_bias": {5: -3.0, 7: 2.0},
        "temperature": 0.7,
        "seed": 1,
        "min_p": 0.05,
    },
    "greedy with penalties": {"repetition_penalty": 1.5, "frequency_penalty": 0.3},
}
TURNS = [
    {"role": "user", "content": "Hi 😀"},
    {"role": "assistant", "content": "ho"},
    {"role": "user", "content": "ok?"},
]
TEXTS = ["the cat sat on the mat", "a dog ran " * 9, "red", "unknown wörds ."]
COUNT = 64  # tokens of an answer


def model(name: str) -> Any:
    """An Instance: `talker`, `gpt2`, or a Llama with packed weights, `Q4_0` or `Q8_0`."""
    if name == "talker":
        return hf.load_hf(tiny_text_models.talker(), max_seq_len=256)
    if name in ("Q4_0", "Q8_0"):
        return hf.load_hf(gguf_models.files("llama", name)[0])
    return hf.load_hf(hf_models.reference(name)[1])


def exported(instance: Any, path: Path) -> Path:
    """The file of an Instance."""
    instance.export(path)
    return path
