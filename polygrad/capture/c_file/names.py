"""C identifiers: which texts are one, and one for every name of a tensor."""

from __future__ import annotations

import re
from collections.abc import Iterable

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# Of C11 and C++, whose compilers read headers, too; some are macros of C's headers.
_KEYWORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t
    class co_await co_return co_yield compl complex concept const const_cast consteval constexpr constinit
    continue decltype default delete do double dynamic_cast else enum explicit export extern false float for
    friend goto if imaginary import inline int long module mutable namespace new noexcept noreturn not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return
    short signed sizeof static static_assert static_cast struct switch template this thread_local throw true
    try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    linux unix errno stdin stdout stderr""".split()
)  # fmt: skip


def is_identifier(text: str) -> bool:
    """Whether a text is an identifier of C and of C++, not reserved, and no keyword."""
    return _IDENTIFIER.fullmatch(text) is not None and "__" not in text and text not in _KEYWORDS


def identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """An identifier for each name, all different, and different from those `taken`.

    >>> identifiers(["layers.0.weight", "layers_0_weight", "0", "for"])
    ['layers_0_weight', 'layers_0_weight_2', 't0', 'for_']
    """
    used = set(taken)
    out = []
    for name in names:
        plain = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9_]", "_", name)).lstrip("_") or "t"
        if plain[0].isdigit():
            plain = f"t{plain}"
        if plain in _KEYWORDS:
            plain += "_"
        free, count = plain, 1
        while free in used:
            count += 1
            free = f"{plain.rstrip('_')}_{count}"
        used.add(free)
        out.append(free)
    return out
