"""A small Llama with a tokenizer and a chat template, in a folder, and texts to train it on."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# Writes what the assistant thought before its last answer alone.
THINKING = (
    "{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' and loop.last %}hm: {% endif %}"
    "{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ["<s>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
TEXTS = [
    f"the {a} {b} sees the {c}" for a in ("old", "new") for b in ("cat", "dog") for c in ("sea", "sun", "sky")
]


@functools.cache
def folder(template: str = TEMPLATE, dropout: float = 0.0) -> Path:
    """The folder, made once."""
    out = Path(tempfile.mkdtemp())
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="<|end|>", chat_template=template
    )
    fast.save_pretrained(out)
    config = transformers.LlamaConfig(
        vocab_size=320, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, attention_dropout=dropout, bos_token_id=0,
        eos_token_id=1, pad_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(out)
    return out


def write_texts(path: Path, records: list[dict[str, Any]] | None = None) -> Path:
    """A JSONL file of records, or of TEXTS."""
    rows = [{"text": t} for t in TEXTS] if records is None else records
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return path
