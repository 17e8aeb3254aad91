"""Functions of this process get the code that they have after a change of their module."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

Codes = list[tuple[CodeType, CodeType]]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def is_like(a: CodeType, b: CodeType) -> bool:
    """Whether two code objects are equal, but for their places and for code inside of them."""
    constants = [repr([c for c in x.co_consts if not isinstance(c, CodeType)]) for x in (a, b)]
    return a.co_code == b.co_code and a.co_names == b.co_names and constants[0] == constants[1]


def new_codes(path: str, source: str, changed: str) -> Codes | None:
    """The code of a module's functions before and after a change; None if the module's own code changes."""
    before, after = (list(_codes(compile(x, path, "exec", dont_inherit=True))) for x in (source, changed))
    if len(before) != len(after) or not is_like(before[0], after[0]):
        return None
    return list(zip(before[1:], after[1:]))


def functions_of(tree: Path) -> dict[str, list[FunctionType]]:
    """The functions of each module of polygrad."""
    functions = defaultdict(list)
    gc.unfreeze()
    for x in gc.get_objects():
        if type(x) is FunctionType and x.__code__.co_filename.startswith(f"{tree}/polygrad/"):
            functions[x.__code__.co_filename].append(x)
    gc.freeze()
    return functions


def replace_codes(functions: Iterable[FunctionType], codes: Codes) -> None:
    by_place = defaultdict(list)
    for before, after in codes:
        by_place[before.co_qualname, before.co_firstlineno].append((before, after))
    for f in functions:
        for before, after in by_place[f.__code__.co_qualname, f.__code__.co_firstlineno]:
            if is_like(f.__code__, before):
                f.__code__ = after
                break
