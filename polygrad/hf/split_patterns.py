"""How byte-level BPE models cut text into words before they merge: regular expressions by the names of
families.

GGUF files have the name alone (`tokenizer.ggml.pre`). The expressions are those of the families' own
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
_DEEPSEEK_LETTERS = (
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴ"
    r"ᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
)
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
