"""Tokenizers that tests train, of the kinds that models have, and strings to try them on: Unicode of every
kind.
"""

from __future__ import annotations

import functools
import json
import random
import tempfile
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
SENTENCES = [
    "The quick brown fox jumps over the lazy dog; it didn't care, and we'll see what they've done.",
    "Tokenizers split words into pieces: un-break-able, antidisestablishmentarianism, 3.14159, 2,000,000.",
    "def encode(text: str) -> list[int]:\n    return [ids[piece] for piece in split(text)]\n",
    "Été à Nîmes, Straße in Köln, señor niño, Łódź, İstanbul, ΑΘΗΝΑ οδός, Москва, עברית, العربية.",
    "你好，世界！東京は日本の首都です。 한국어 문장도 있습니다. ภาษาไทย हिन्दी",
    "Emoji 🙂👍🏽👩‍👩‍👧‍👦🏳️‍🌈 and symbols ½ ² Ⅷ ™ ∑ → € £.",
]

# --- strings

_SCRIPTS = [
    *(
        (0x20, 0x7F),
        (0xA0, 0x180),
        (0x370, 0x400),
        (0x400, 0x500),
        (0x590, 0x600),
        (0x600, 0x700),
        (0x900, 0x980),
    ),
    *(
        (0xE00, 0xE80),
        (0x1100, 0x1200),
        (0x1E00, 0x2000),
        (0x2000, 0x2070),
        (0x2070, 0x20D0),
        (0x2100, 0x2200),
    ),
    *(
        (0x2200, 0x2300),
        (0x3000, 0x3100),
        (0x4E00, 0x5000),
        (0xAC00, 0xAD00),
        (0xF900, 0xFB00),
        (0xFB00, 0xFB50),
    ),
    *((0xFE00, 0xFE10), (0xFF00, 0xFFF0), (0x10400, 0x10450), (0x1D400, 0x1D500), (0x1F300, 0x1F600)),
    *((0x20000, 0x20100), (0x2F800, 0x2F900)),
]
_SPACES = (
    " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2003\u2009\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_FAMILY = ["👩", "👨", "👧", "👦", "🏳️", "🌈", "❤️", "🏽", "👍", "🇩🇪", "🇫🇷"]
_CONTROLS = (
    "".join(map(chr, range(1, 32))) + "\x00\x7f\x80\x9f\u200d\u200e\u200f\u202a\u202e\u2066\u2069\ufffd\ufffe"
)
_WORDS = " ".join(SENTENCES).split()


def _assigned(rng: random.Random, first: int, end: int) -> str:
    """An assigned character that is no surrogate."""
    while True:
        c = chr(rng.randrange(first, end))
        if unicodedata.category(c) not in ("Cn", "Cs"):
            return c


def _piece(rng: random.Random, special: list[str]) -> str:
    kind = rng.randrange(14)
    if kind < 3:
        return rng.choice(_WORDS) + rng.choice(["", " ", " ", "  ", ", ", "'s ", "."])
    if kind == 3:
        low, high = rng.choice(_SCRIPTS)
        return "".join(_assigned(rng, low, high) for _ in range(rng.randrange(1, 8)))
    if kind == 4:
        marks = "".join(_assigned(rng, 0x300, 0x370) for _ in range(rng.randrange(1, 6)))
        return rng.choice("aeiouAEIOUנбक") + marks
    if kind == 5:
        return "\u200d".join(rng.sample(_FAMILY, rng.randrange(1, 5)))
    if kind == 6:
        return "".join(rng.choice(_SPACES) for _ in range(rng.randrange(1, 6)))
    if kind == 7:
        return "".join(rng.choice(_CONTROLS) for _ in range(rng.randrange(1, 4)))
    if kind == 8:
        return "\u202b" + "".join(_assigned(rng, 0x5D0, 0x6FF) for _ in range(rng.randrange(1, 8))) + "\u202c"
    if kind == 9:
        return rng.choice([str(rng.randrange(10**9)), "٣٤٥", "½", "Ⅷ", "²³", "1,000.5e-3", "0x1F"])
    if kind == 10:
        return rng.choice([" ", ""]) + rng.choice(special) + rng.choice([" ", "", "x"])
    if kind == 11 and rng.random() < 0.1:
        return rng.choice(["ab", "é", "漢", "x", "🙂"]) * rng.randrange(60, 400)
    if kind == 12:
        return "".join(
            rng.choice("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~‘’“”…—¿¡") for _ in range(rng.randrange(1, 5))
        )
    return rng.choice(
        ["don't", "WE'LL", "they've", "I'm", "x'S", "ς Σ ΟΔΟΣ", "İi", "ſt", "ǅ", "▁", "##s", "<0x41>"]
    )


def strings(count: int, special: list[str], seed: int = 0) -> list[str]:
    """Strings of 1 to 12 pieces: words, scripts, marks, emoji, spaces, controls, tokens of `special`."""
    rng = random.Random(seed)
    out = ["", " ", "\n", "  a  ", *special]
    while len(out) < count:
        out.append("".join(_piece(rng, special) for _ in range(rng.randrange(1, 13))))
    return out[:count]


# --- tokenizers


def _train(tokenizer: Any, trainer: Any) -> Any:
    tokenizer.train_from_iterator(SENTENCES * 20, trainer)
    return tokenizer


def _bpe(size: int = 600, special: tuple[str | AddedToken, ...] = (), **arguments: Any) -> Any:
    return trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        **arguments,
    )


def gpt2() -> PreTrainedTokenizerFast:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    _train(tokenizer, _bpe(special=("<|endoftext|>",)))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
    )


def _byte_level(pattern: str | None, special: tuple[str, ...], ignore_merges: bool = False) -> Any:
    tokenizer = tokenizers.Tokenizer(models.BPE(ignore_merges=ignore_merges))
    first = pre_tokenizers.Split(Regex(pattern), "isolated") if pattern else pre_tokenizers.Digits(True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [first, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return _train(tokenizer, _bpe(special=special))


def llama3() -> PreTrainedTokenizerFast:
    special = (
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
    )
    tokenizer = _byte_level(LLAMA3, special, ignore_merges=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin_of_text|> $A",
        pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
        special_tokens=[("<|begin_of_text|>", tokenizer.token_to_id("<|begin_of_text|>"))],
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=special[0], eos_token=special[-1])


def qwen2() -> PreTrainedTokenizerFast:
    tokenizer = _byte_level(QWEN2, ("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("héé", single_word=True)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", padding_side="left"
    )


def smollm() -> PreTrainedTokenizerFast:
    tokenizer = _byte_level(None, ("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|im_start|>", eos_token="<|im_end|>"
    )


def roberta() -> PreTrainedTokenizerFast:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    _train(tokenizer, _bpe(special=("<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True))))
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
    )


def clip() -> PreTrainedTokenizerFast:
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    _train(tokenizer, _bpe(special=("<|startoftext|>", "<|endoftext|>"), end_of_word_suffix="</w>"))
    tokenizer.post_processor = processors.RobertaProcessing(
        ("<|endoftext|>", 1), ("<|startoftext|>", 0), False, False
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|startoftext|>", eos_token="<|endoftext|>"
    )


def _wordpiece(lowercase: bool) -> PreTrainedTokenizerFast:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    _train(tokenizer, trainers.WordPieceTrainer(vocab_size=600, special_tokens=special, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, clean_up_tokenization_spaces=not lowercase, **names
    )


def bert() -> PreTrainedTokenizerFast:
    return _wordpiece(True)


def bert_cased() -> PreTrainedTokenizerFast:
    return _wordpiece(False)


def t5() -> PreTrainedTokenizerFast:
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Strip(left=False, right=True),
            normalizers.Replace(Regex(" {2,}"), "▁"),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    _train(tokenizer, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    tokenizer.add_special_tokens(["<extra_id_1>", "<extra_id_0>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>", pad_token="<pad>"
    )


def charsmap(table: dict[str, str]) -> bytes:
    """Sentencepiece's compiled table of replacements: the double array of darts-clone, 256 units a node."""
    texts, values = b"", {}
    for old, new in table.items():
        values[old.encode()] = len(texts)
        texts += new.encode() + b"\0"
    nodes = sorted({key[:i] for key in values for i in range(len(key) + 1)}, key=lambda key: (len(key), key))
    place = {node: 256 * (i + 1) for i, node in enumerate(nodes)}  # where the units of its children are
    units = [0] * (256 * (len(nodes) + 1))
    for node in nodes:
        at = place[node[:-1]] ^ node[-1] if node else 0
        label = node[-1] if node else 0
        units[at] = (at ^ place[node]) << 10 | (node in values) << 8 | label
        if node in values:
            units[place[node]] = 1 << 31 | values[node]
    trie = b"".join(unit.to_bytes(4, "little") for unit in units)
    return len(trie).to_bytes(4, "little") + trie + texts


REPLACEMENTS = {
    **{
        chr(c): unicodedata.normalize("NFKC", chr(c))
        for c in [*range(0xFF01, 0xFF5F), 0xBD, 0xB2, 0x2126, 0x2167]
    },
    **{chr(c): " " for c in [9, 10, 13, 0xA0, 0x2003, 0x2028, 0x3000, 0x200B, 0xFEFF]},
    **{chr(c): "" for c in [*range(1, 9), 0xAD, 0x7F]},
    "e\u0301": "é",
    "a\u0301": "á",
    "u\u0308": "ü",
    "\u0301": "",
    "👍🏽": "+1",
    "ﬁ": "fi",
    "Σ": "s",
}


def xlm() -> PreTrainedTokenizerFast:
    """Unigram after a table of replacements, as XLM-RoBERTa and T5 have it."""
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(charsmap(REPLACEMENTS)),
            normalizers.Strip(left=False, right=True),
            normalizers.Replace(Regex(" {2,}"), "▁"),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    _train(tokenizer, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    names = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), special))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


BYTES = [f"<0x{i:02X}>" for i in range(256)]


def _sentencepiece_bpe(normalizer: Any, pre_tokenizer: Any, decoder: Any) -> PreTrainedTokenizerFast:
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer, tokenizer.decoder = normalizer, decoder
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    special = ["<unk>", "<s>", "</s>", *BYTES]
    _train(tokenizer, trainers.BpeTrainer(vocab_size=700, special_tokens=special, show_progress=False))
    # While it was trained, words were cut at spaces, and tokens of bytes were special. They are none of it
    # now.
    data = tokenizers.Tokenizer.from_str(_without_bytes(tokenizer.to_str()))
    if pre_tokenizer is not None:
        data.pre_tokenizer = pre_tokenizer
    data.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=data, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )


def _without_bytes(text: str) -> str:
    data = json.loads(text)
    data["added_tokens"] = [entry for entry in data["added_tokens"] if entry["content"] not in BYTES]
    data["pre_tokenizer"] = None
    return json.dumps(data)


def llama2() -> PreTrainedTokenizerFast:
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    return _sentencepiece_bpe(
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
        None,
        decoders.Sequence(back),
    )


def gemma() -> PreTrainedTokenizerFast:
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    return _sentencepiece_bpe(
        normalizers.Replace(" ", "▁"),
        pre_tokenizers.Split(" ", "merged_with_previous"),
        decoders.Sequence(back),
    )


KINDS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    f.__name__: f
    for f in (gpt2, llama3, qwen2, smollm, roberta, clip, bert, bert_cased, t5, xlm, llama2, gemma)
}


@functools.cache
def _trained_folder(kind: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="tokenizer-"))
    KINDS[kind]().save_pretrained(str(folder))
    return folder


def trained(kind: str) -> tuple[PreTrainedTokenizerFast, Path]:
    """The tokenizer of transformers, read from the folder that it was saved in, and that folder. It is read
    again for each caller, as a call with truncation or padding changes it."""
    folder = _trained_folder(kind)
    return PreTrainedTokenizerFast.from_pretrained(str(folder)), folder


def special_tokens(judge: PreTrainedTokenizerFast) -> list[str]:
    """All added tokens."""
    return list(judge.get_added_vocab())
