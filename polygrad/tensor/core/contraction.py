"""The order in which einsum contracts its operands: pairwise, with the least number of products.

Exact for up to six operands, by dynamic programming over their subsets. More operands are first joined
greedily, the cheapest pair at a time. A path has numpy.einsum_path's form: pairs of positions; both operands
leave the list, and their product is appended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from polygrad.helpers import prod

EXACT = 6


def contraction_path(terms: Sequence[str], output: str, sizes: Mapping[str, int]) -> list[tuple[int, int]]:
    """Pairs of positions to contract, until one or two operands are left, which the caller joins.

    terms: the letters of each operand. output: the letters of the result. sizes: the size of each letter.
    """
    remaining_terms, path = list(terms), []
    while len(remaining_terms) > EXACT:
        pairs = combinations(range(len(remaining_terms)), 2)
        i, j = min(pairs, key=lambda p: _products(remaining_terms[p[0]] + remaining_terms[p[1]], sizes))
        _join(remaining_terms, i, j, output)
        path.append((i, j))
    if len(remaining_terms) > 2:
        path += _exact_path(remaining_terms, output, sizes)
    return path


def _exact_path(terms: list[str], output: str, sizes: Mapping[str, int]) -> list[tuple[int, int]]:
    count = len(terms)
    kept_letters: dict[int, str] = {}
    for subset in range(1, 1 << count):
        inner_letters = "".join(t for i, t in enumerate(terms) if subset >> i & 1)
        outer_letters = output + "".join(t for i, t in enumerate(terms) if not subset >> i & 1)
        kept_letters[subset] = (
            "".join(c for c in dict.fromkeys(inner_letters) if c in outer_letters)
            if subset & (subset - 1)
            else inner_letters
        )
    cost = {1 << i: 0 for i in range(count)}
    split: dict[int, int] = {}
    for subset in sorted(kept_letters, key=int.bit_count):
        if subset in cost:
            continue
        part = (subset - 1) & subset
        while part:
            complement = subset ^ part
            if part > complement:  # each split once
                total = (
                    cost[part]
                    + cost[complement]
                    + _products(kept_letters[part] + kept_letters[complement], sizes)
                )
                if subset not in cost or total < cost[subset]:
                    cost[subset], split[subset] = total, part
            part = (part - 1) & subset
    places, path = [1 << i for i in range(count)], []
    order = [(1 << count) - 1]
    for subset in order:
        if subset in split:
            order += [split[subset], subset ^ split[subset]]
    for subset in reversed([s for s in order if s in split][1:]):  # the last product is left to the caller
        i, j = sorted((places.index(split[subset]), places.index(subset ^ split[subset])))
        path.append((i, j))
        del places[j], places[i]
        places.append(subset)
    return path


def _products(letters: str, sizes: Mapping[str, int]) -> int:
    return prod([sizes[c] for c in set(letters)])


def _join(terms: list[str], i: int, j: int, output: str) -> None:
    both = terms[i] + terms[j]
    del terms[j], terms[i]
    remaining_letters = output + "".join(terms)
    terms.append("".join(c for c in dict.fromkeys(both) if c in remaining_letters))
