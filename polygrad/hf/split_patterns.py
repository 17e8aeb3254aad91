"""The regular expressions by which byte-level BPE models split text into words before merging, by family.

GGUF files contain only the name (`tokenizer.ggml.pre`). The expressions are those of the families'
tokenizer.json.
"""

from __future__ import annotations

from typing import Any

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LLAMA3 = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*"
    rf"{_CONTRACTIONS}?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CJK = "一-龥ࠀ-一가-퟿"
# The letters with case of Unicode 11, by their code points: spelt out they would not survive normalization.
_CASED = """
41-5a 61-7a b5 c0-d6 d8-f6 f8-1ba 1bc-1bf 1c4-293 295-2af 370-373 376 377 37b-37d 37f 386 388-38a 38c
38e-3a1 3a3-3f5 3f7-481 48a-52f 531-556 10a0-10c5 13a0-13f5 13f8-13fd 1c90-1cba 1cbd-1cbf 1d00-1d2b
1d6b-1d77 1d79-1d9a 1e00-1f15 1f18-1f1d 1f20-1f45 1f48-1f4d 1f50-1f57 1f59 1f5b 1f5d 1f5f-1f7d 1f80-1fb4
1fb6-1fbc 1fbe 1fc2-1fc4 1fc6-1fcc 1fd0-1fd3 1fd6-1fdb 1fe0-1fec 1ff2-1ff4 1ff6-1ffc 2102 2107 210a-2113
2115 2119-211d 2124 2126 2128 212a-212d 212f-2134 2139 213c-213f 2145-2149 214e 2183 2184 2c00-2c7b
2c7e-2ce4 2ceb-2cee 2cf2 2cf3 a640-a66d a680-a69b a722-a76f a771-a787 a78b-a78e ab70-abbf fb00-fb06
fb13-fb17 ff21-ff3a ff41-ff5a 10400-1044f 104b0-104d3 104d8-104fb 10c80-10cb2 10cc0-10cf2 118a0-118df
1e900-1e943
"""
_CASED_CLASS = "".join(
    "-".join(chr(int(end, 16)) for end in interval.split("-")) for interval in _CASED.split()
)
_DEEPSEEK_LETTERS = rf"\s?[{_CASED_CLASS}]+"
_DEEPSEEK_V3 = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _bytes(uses_pattern: bool = False, adds_space: bool = False) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": adds_space,
        "trim_offsets": True,
        "use_regex": uses_pattern,
    }


def _digits(one_by_one: bool) -> dict[str, Any]:
    return {"type": "Digits", "individual_digits": one_by_one}


_GPT2_STEPS = (_bytes(True),)
_STEPS: dict[str, tuple[dict[str, Any], ...]] = {
    "gpt-2": _GPT2_STEPS,
    "llama-bpe": (_split(_LLAMA3), _bytes()),
    "qwen2": (_split(_QWEN2), _bytes()),
    "smollm": (_digits(True), _bytes(True)),
    "gpt-4o": (_split(_GPT4O), _bytes()),
    "tekken": (_split(_TEKKEN), _bytes()),
    "deepseek-llm": (_split("[\r\n]"), _split(_DEEPSEEK_LETTERS), _split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"))
    + (_split(r"\s+$"), _split(f"[{_CJK}]+"), _digits(True), _bytes()),
    "deepseek-coder": (_split("[\r\n]"), _split(r"\s?\p{L}+"), _split(r"\s?\p{P}+"), _split(f"[{_CJK}]+"))
    + (_digits(True), _bytes()),
    "deepseek-v3": (_split(r"\p{N}{1,3}"), _split("[一-龥぀-ゟ゠-ヿ]+"), _split(_DEEPSEEK_V3), _bytes()),
}
# Other names of the same.
_SAME = {
    **dict.fromkeys(("gpt2", "phi-2", "mpt", "olmo", "jais", "jina-es", "jina-de", "roberta-bpe"), "gpt-2"),
    **dict.fromkeys(("llama3", "llama-v3", "falcon3", "pixtral", "dbrx", "smaug-bpe"), "llama-bpe"),
    **dict.fromkeys(("stablelm2", "deepseek-r1-qwen"), "qwen2"),
    **dict.fromkeys(("starcoder", "refact", "command-r", "codeshell"), "smollm"),
    "llama4": "gpt-4o",
}
# Families whose words are looked up whole before they are merged.
IGNORE_MERGES = frozenset({"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "tekken"})
# Families that begin a text with a token unless the file says otherwise.
ADD_BEGIN = frozenset({"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "tekken"})
NAMES = tuple(sorted({*_STEPS, *_SAME}))


def byte_level_steps(name: str) -> dict[str, Any] | None:
    """The pre-tokenizer of the family `name`; None if it is not known."""
    steps = _STEPS.get(_SAME.get(name, name))
    if steps is None:
        return None
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "pretokenizers": list(steps)}
