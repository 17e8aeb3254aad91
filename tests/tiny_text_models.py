"""Folders of tiny models with tokenizers, made by transformers: one that talks, one that embeds, one that
classifies."""

from __future__ import annotations

import functools
import tempfile

import tokenizers as tk
import torch
import transformers

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# The same, with tools and calls of them in the form of Hermes and Qwen.
TOOL_TEMPLATE = (
    "{% if tools %}<|im_start|>system\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}<|im_end|>\n"
    "{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] or '' }}"
    "{% for c in m['tool_calls'] or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>'
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_WORDS = "[PAD] [UNK] [CLS] [SEP] the a cat dog sat ran on mat . red [MASK]".split()


@functools.cache
def talker(template: str = _TEMPLATE) -> str:
    """A model of 512 positions, whose tokens are bytes, with a chat template."""
    trained = tk.Tokenizer(tk.models.BPE())
    trained.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = tk.decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trained.train_from_iterator(
        [],
        tk.trainers.BpeTrainer(
            special_tokens=special, initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet()
        ),
    )
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=trained, eos_token="<|im_end|>")
    tokenizer.chat_template = template
    folder = tempfile.mkdtemp(prefix="talker-")
    tokenizer.save_pretrained(folder)
    config = transformers.Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(0)
    model = transformers.Qwen2ForCausalLM(config)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * 0.3 if p.ndim > 1 else p)
    model.save_pretrained(folder)
    return folder


def _reader(
    model_class: type, **more: object
) -> tuple[str, transformers.PreTrainedTokenizerFast, torch.nn.Module]:
    word_pieces = tk.Tokenizer(
        tk.models.WordPiece({word: i for i, word in enumerate(_WORDS)}, unk_token="[UNK]")
    )
    word_pieces.pre_tokenizer = tk.pre_tokenizers.Whitespace()
    word_pieces.post_processor = tk.processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=word_pieces,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    folder = tempfile.mkdtemp(prefix="reader-")
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(_WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=64,
        **more,
    )
    torch.manual_seed(0)
    model = model_class(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * 0.2 if p.ndim > 1 else p)
    model.save_pretrained(folder)
    return folder, tokenizer, model


@functools.cache
def embedder() -> tuple[str, transformers.PreTrainedTokenizerFast, torch.nn.Module]:
    """A folder, its tokenizer and its model."""
    return _reader(transformers.BertModel)


@functools.cache
def classifier(
    problem: str | None = None,
) -> tuple[str, transformers.PreTrainedTokenizerFast, torch.nn.Module]:
    """The same, of a model with three labels."""
    labels = {0: "bad", 1: "so so", 2: "good"}
    return _reader(
        transformers.BertForSequenceClassification, num_labels=3, id2label=labels, problem_type=problem
    )


@functools.cache
def masked() -> tuple[str, transformers.PreTrainedTokenizerFast, torch.nn.Module]:
    """The same, of a model that tells masked words."""
    return _reader(transformers.BertForMaskedLM)
