"""Writes polygrad/tensor/second_names.pyi: the methods of Tensor with their arguments' second names, for type
checkers. The names are those of polygrad/tensor/core/argument_names.py.

python scripts/second_names.py             writes it
python scripts/second_names.py --check     fails where it differs
"""

from __future__ import annotations

import ast
import builtins
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_overloads

from polygrad import Tensor
from polygrad.tensor.core.argument_names import SECOND_NAMES, first_name

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "polygrad" / "tensor" / "second_names.pyi"
HEAD = '"""Written by scripts/second_names.py: do not edit."""\n'


def methods() -> dict[str, Any]:
    """The public methods of Tensor whose arguments have second names, as they are in its classes."""
    found: dict[str, Any] = {}
    for cls in Tensor.__mro__[1:-1]:
        for name, member in vars(cls).items():
            if not name.startswith("_") and name not in found and (callable(member) or is_of_class(member)):
                found[name] = member
    return {
        name: m
        for name, m in sorted(found.items())
        if second_names(function_of(m)) and not get_overloads(function_of(m))
    }


def is_of_class(member: Any) -> bool:
    return isinstance(member, (classmethod, staticmethod))


def function_of(member: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = inspect.unwrap(member.__func__ if is_of_class(member) else member)
    return found


def second_names(function: Callable[..., Any]) -> dict[str, str]:
    """First names by second names."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return {}
    return {s: first for s in SECOND_NAMES if (first := first_name(parameters, s)) is not None}


def overloads(name: str, member: Any) -> list[str]:
    """The method as it is, and with any of its names as keywords from the first that has a second one on."""
    function = function_of(member)
    signature, seconds = inspect.signature(function), second_names(function)
    parameters = list(signature.parameters.values())
    start = min(i for i, p in enumerate(parameters) if p.name in seconds.values())
    before, after = (
        [p for p in ps if p.kind is not p.VAR_POSITIONAL] for ps in (parameters[:start], parameters[start:])
    )
    keywords = [f"{p.name}: {p.annotation} = ..." for p in after]
    keywords += [
        f"{second}: {signature.parameters[first].annotation} = ..." for second, first in seconds.items()
    ]
    decorator = f"    @{type(member).__name__}\n" if is_of_class(member) else ""
    return [
        f"    @overload\n{decorator}    def {name}({arguments}) -> {signature.return_annotation}: ..."
        for arguments in (_joined(signature), ", ".join([*map(_text, before), "*", *keywords]))
    ]


def _joined(signature: inspect.Signature) -> str:
    parts, is_keyword = [], False
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not is_keyword:
            if not any(q.kind is q.VAR_POSITIONAL for q in signature.parameters.values()):
                parts.append("*")
            is_keyword = True
        parts.append(_text(p))
        if p.kind is p.VAR_POSITIONAL:
            is_keyword = True
    return ", ".join(parts)


def _text(p: inspect.Parameter) -> str:
    star = "*" if p.kind is p.VAR_POSITIONAL else ""
    kind = "" if p.name in ("self", "cls") else f": {p.annotation}"
    return f"{star}{p.name}{kind}" + ("" if p.default is p.empty else " = ...")


def imports(names: set[str], found: dict[str, Any]) -> list[str]:
    """Lines that import the names that annotations use, from where they are defined."""
    builtin = set(dir(builtins))
    homes: dict[str, set[str]] = {}
    for name in names - builtin - {"Self"}:
        owners = (f.__globals__ for f in map(function_of, found.values()))
        value = next((owner[name] for owner in owners if name in owner), name)
        home = getattr(value, "__module__", None)
        if home is None or not home.startswith("polygrad") or getattr(value, "__name__", "") != name:
            home = _definer(name, value) or home
        homes.setdefault(home or "typing", set()).add(name)
    homes.setdefault("typing", set()).update({"Self", "overload"})
    return [f"from {home} import {', '.join(sorted(ns))}" for home, ns in sorted(homes.items())]


def _definer(name: str, value: Any) -> str | None:
    """The module of `polygrad.tensor` that assigns the name at its top."""
    for module in [sys.modules[m] for m in sorted(sys.modules) if m.startswith("polygrad.tensor")]:
        if vars(module).get(name) != value:
            continue
        for node in ast.parse(inspect.getsource(module)).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                return str(module.__name__)
    return None


def written() -> str:
    """The stub, formatted."""
    found = methods()
    body = [line for name, member in found.items() for line in overloads(name, member)]
    names = {
        node.id
        for member in found.values()
        for p in [*inspect.signature(function_of(member)).parameters.values()]
        for annotation in (p.annotation, inspect.signature(function_of(member)).return_annotation)
        if isinstance(annotation, str)
        for node in ast.walk(ast.parse(annotation))
        if isinstance(node, ast.Name)
    }
    text = "\n".join(
        [HEAD, *imports(names, found), "", "class SecondNames:", "    __slots__ = ()", *body, ""]
    )
    for command in (["check", "--select=I", "--fix", "-q"], ["format", "-q"]):
        ruff = [sys.executable, "-m", "ruff", *command, f"--stdin-filename={STUB}", "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> None:
    text = written()
    if "--check" not in sys.argv:
        STUB.write_text(text, encoding="utf-8")
    elif STUB.read_text(encoding="utf-8") != text:
        raise SystemExit(f"{STUB} differs from what scripts/second_names.py writes: run it")


if __name__ == "__main__":
    main()
