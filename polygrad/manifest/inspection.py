"""The manifest, read off the package: signatures, annotations, docstrings, and the tables of `reviewed`.

Every public callable becomes {id, name, parameters, result, reads, raises, doc}. `result` has a kind:

    tensor, tensors (count: how many, "arguments", "arguments + 1", or null: known when it has run), nested
    (counts: of each element, how many tensors it is a sequence of, or null: it is a tensor), self,
    none, value (type), object (class), state_dict, tree (what a captured function returned), context (a
    context manager), host (what only Python can use: not for bindings)

The order is that of the source within a class, and of `CLASSES` and `FUNCTIONS` between them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from polygrad import Device, Tensor, TinyJit, Variable, compile_step, errors, nn
from polygrad.capture.step import CompiledStep
from polygrad.dtype import dtypes
from polygrad.errors import InternalError
from polygrad.manifest import reviewed
from polygrad.manifest.examples import example_of
from polygrad.runtime.threads import get_num_threads, set_num_threads

VERSION = 1

CLASSES: dict[str, type] = {
    "Tensor": Tensor,
    **{
        f"nn.{name}": value
        for name in nn.__all__
        if isinstance(value := getattr(nn, name), type) and f"nn.{name}" not in reviewed.PYTHON_ONLY
    },
    **{
        f"nn.optim.{name}": value
        for name in nn.optim.__all__
        if isinstance(value := getattr(nn.optim, name), type)
        and f"nn.optim.{name}" not in reviewed.PYTHON_ONLY
    },
    "TinyJit": TinyJit,
    "CompiledStep": CompiledStep,
    "Variable": type(Variable("v", 0, 1)),
    "Device": type(Device),
}
# Of a class that is not public as a whole, what is.
PARTIAL = {"Variable": ("bind",)}
# Who makes the objects of a class: a function in the place of its constructor, or None: not the user.
MAKERS: dict[str, Callable[..., Any] | None] = {
    "CompiledStep": None,
    "Device": None,
    "Variable": Variable,
    "nn.optim.LRScheduler": None,
    "nn.optim.Optimizer": None,
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f"nn.{name}": value for name in nn.__all__ if inspect.isfunction(value := getattr(nn, name))},
    "compile_step": compile_step,
    "get_num_threads": get_num_threads,
    "set_num_threads": set_num_threads,
    **{
        f"nn.optim.{name}": value
        for name in nn.optim.__all__
        if inspect.isfunction(value := getattr(nn.optim, name))
    },
    **{
        identity: value
        for space in (nn.data, nn.datasets, nn.init, nn.state)
        for name in space.__all__
        if inspect.isfunction(value := getattr(space, name))
        and (identity := f"nn.{space.__name__.rpartition('.')[2]}.{name}") not in reviewed.PYTHON_ONLY
    },
}


def manifest() -> dict[str, Any]:
    """The public API as plain data, the same on every run."""
    return {
        "version": VERSION,
        "types": reviewed.TYPES,
        "dtypes": [
            {"name": str(d), "itemsize": d.itemsize, "kind": d.kind, "bits": d.bits} for d in dtypes.all
        ],
        "dtype_aliases": _dtype_aliases(),
        "errors": [
            {
                "id": f"errors.{name}",
                "name": name.rstrip("_"),
                "doc": _doc(value),
                "base": value.__bases__[0].__name__,
            }
            for name, value in vars(errors).items()
            if isinstance(value, type) and issubclass(value, errors.PolygradError)
        ],
        "classes": [_class(name, cls) for name, cls in CLASSES.items() if name not in reviewed.ALIASES],
        "aliases": [{"id": name, "of": of} for name, of in reviewed.ALIASES.items()],
        "functions": [_callable(name, f, "function") for name, f in FUNCTIONS.items()],
    }


def _dtype_aliases() -> dict[str, str]:
    own = {str(d) for d in dtypes.all}
    aliases = {k: str(v) for k, v in vars(dtypes).items() if str(v) in own and k not in own}
    return {k: v for k, v in aliases.items() if not k.startswith("default_")}


# --- classes


def _class(name: str, cls: type) -> dict[str, Any]:
    init = inspect.getattr_static(cls, "__init__")
    maker = MAKERS.get(name, init)
    doc = _doc(cls if maker in (init, None) else maker)
    out: dict[str, Any] = {"id": name, "name": name.rpartition(".")[2], "doc": doc, **_example(cls)}
    base = next((k for b in cls.__mro__[1:] for k, v in CLASSES.items() if v is b), None)
    if base is not None:
        out["base"] = base
    if maker is not None:
        out["constructor"] = {
            "parameters": _parameters(name, maker, bound=maker is init),
            "raises": _raises(doc),
        }
    out["attributes"] = [_attribute(name, k, v) for k, v in reviewed.ATTRIBUTES.get(name, {}).items()]
    if name in reviewed.OPEN_STATE:
        out["open_state"] = True
    attributes = set(reviewed.ATTRIBUTES.get(name, {}))
    members = list(_members(cls, base))
    chosen = PARTIAL.get(name) or [k for k in members if k not in attributes]
    out["properties"] = [
        _property(f"{name}.{k}", p)
        for k in chosen
        if isinstance(p := inspect.getattr_static(cls, k), property)
    ]
    out["methods"] = [
        _callable(f"{name}.{k}", f, _kind(f))
        for k in chosen
        if isinstance(f := inspect.getattr_static(cls, k), (FunctionType, classmethod, staticmethod))
    ]
    return out


def _members(cls: type, base: str | None) -> Iterator[str]:
    """The public names of a class and of those bases that are no class of the manifest, each once."""
    skip = set(CLASSES[base].__mro__) if base is not None else set()
    seen: set[str] = set()
    for k in cls.__mro__:
        if k is object or k in skip:
            continue
        for name in vars(k):
            public = not name.startswith("_") or name in reviewed.SPECIAL_METHODS
            if public and name not in seen:
                seen.add(name)
                yield name


def _kind(f: Any) -> str:
    return "class" if isinstance(f, classmethod) else "static" if isinstance(f, staticmethod) else "instance"


def _attribute(owner: str, name: str, text: str) -> dict[str, Any]:
    """`text` is an entry of `reviewed.ATTRIBUTES`."""
    text, _, condition = text.partition(" if ")
    static, text = text.startswith("static "), text.removeprefix("static ")
    out: dict[str, Any] = {"id": f"{owner}.{name}", "name": name, "result": _result_from(text)}
    if condition:
        out["present_if"] = condition
    if static:
        out["static"] = True
    return out


def _property(identity: str, p: property) -> dict[str, Any]:
    return {
        "id": identity,
        "name": identity.rpartition(".")[2],
        "result": result_of(identity, p.fget),
        "settable": p.fset is not None,
        "doc": _doc(p),
        **_example(p),
    }


# --- callables


def _callable(identity: str, f: Any, kind: str) -> dict[str, Any]:
    function = getattr(f, "__func__", f)
    doc = _doc(function)
    owner, _, name = identity.rpartition(".")
    # Of a method that has another name too, the tables know the first one.
    first = identity if kind == "function" else f"{owner}.{function.__name__}"
    return {
        "id": identity,
        "name": name,
        "kind": kind,
        "parameters": _parameters(first, function, bound=kind in ("instance", "class")),
        "result": result_of(first, function),
        **({"pair_with": reviewed.PAIRS_WITH[first]} if first in reviewed.PAIRS_WITH else {}),
        "reads": first in reviewed.READS,
        "raises": _raises(doc),
        "doc": doc,
        **_example(function),
    }


def _parameters(identity: str, function: Any, bound: bool) -> list[dict[str, Any]]:
    out = []
    for p in list(inspect.signature(function).parameters.values())[1 if bound else 0 :]:
        if p.kind is p.VAR_KEYWORD:
            out += [_keyword(name) for name in _looked_up(reviewed.KEYWORDS, identity, "what **kwargs are")]
            continue
        if f"{identity}({p.name})" in reviewed.HOST_ARGUMENTS:
            continue
        entry: dict[str, Any] = {
            "name": p.name,
            "kind": _PARAMETER_KINDS[p.kind],
            "type": type_of(identity, p.name, p.annotation, rest=p.kind is p.VAR_POSITIONAL),
        }
        if p.default is not p.empty:
            entry["default"] = list(p.default) if isinstance(p.default, tuple) else p.default
            if entry["default"] is None and "None" not in entry["type"].split(" | "):
                entry["type"] += " | None"
        out.append(entry)
    return out


_PARAMETER_KINDS: dict[Any, str] = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.VAR_POSITIONAL: "rest",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
}


def _keyword(name: str) -> dict[str, Any]:
    kinds = {"dtype": "dtype | None", "device": "device | None", "requires_grad": "bool | None"}
    return {"name": name, "kind": "keyword", "type": kinds[name], "default": None}


def type_of(identity: str, name: str, annotation: str, rest: bool = False) -> str:
    """The type of an argument, in the vocabulary of `reviewed.TYPES`.

    Raises InternalError when neither the annotation nor the tables say it.
    """
    exact = reviewed.ARGUMENTS.get(f"{identity}({name})")
    if exact is not None:
        return exact
    if rest and name == "shape":
        return reviewed.SHAPE_ARGUMENTS
    general = reviewed.ARGUMENTS.get(f"({name})") if annotation in ("Any", "str", "str | None") else None
    return general or _looked_up(
        reviewed.ANNOTATIONS, annotation, f"the type of {identity}({name}), annotated {annotation!r}"
    )


def result_of(identity: str, function: Any) -> dict[str, Any]:
    """What calling it returns. Raises InternalError when neither the annotation nor the tables say it."""
    if identity in reviewed.PYTHON_ONLY:
        return {"kind": "host"}
    if identity in reviewed.RETURNS_SELF:
        return {"kind": "self"}
    reviewed_result = reviewed.RESULTS.get(identity)
    if reviewed_result is not None:
        return _result_from(reviewed_result)
    annotation = inspect.signature(function).return_annotation
    result = _RESULTS.get(annotation)
    if result is None:
        raise InternalError(
            f"manifest: expected a known annotation or an entry of RESULTS for {identity}, got {annotation!r}"
        )
    return result


_RESULTS: dict[Any, dict[str, Any]] = {
    "Self": {"kind": "tensor"},
    "Tensor": {"kind": "tensor"},
    "tuple[Self, Self]": {"kind": "tensors", "count": 2},
    "tuple[Self, Self, Self]": {"kind": "tensors", "count": 3},
    "tuple[Self, ...]": {"kind": "tensors", "count": None},
    "list[Self]": {"kind": "tensors", "count": None},
    "list[Tensor]": {"kind": "tensors", "count": None},
    "tuple[Tensor, ...]": {"kind": "tensors", "count": None},
    "Data": {"kind": "tensors", "count": 4},
    "tuple[Tensor, Tensor]": {"kind": "tensors", "count": 2},
    "tuple[Tensor, Tensor | None]": {"kind": "tensors", "count": 2},
    "tuple[Tensor, tuple[Tensor, Tensor]]": {"kind": "nested", "counts": [None, 2]},
    "Iterator[None]": {"kind": "context"},
    "None": {"kind": "none"},
    **{t: {"kind": "value", "type": t} for t in ("bool", "int", "float", "str")},
}


def _result_from(text: str) -> dict[str, Any]:
    """An entry of a reviewed table: a kind, or `kind: detail`, or a type of the vocabulary."""
    kind, _, detail = text.partition(": ")
    if kind == "value":
        return {"kind": "value", "type": detail}
    if kind == "object":
        return {"kind": "object", "class": detail}
    if kind == "tensors":
        return {"kind": "tensors", "count": detail}
    if kind in ("context", "host", "none", "state_dict", "tree"):
        return {"kind": kind}
    if kind == "Tensor":
        return {"kind": "tensor"}
    if kind == "Tensor | None":
        return {"kind": "tensor", "optional": True}
    if kind == "Tensors":
        return {"kind": "tensors", "count": None}
    return {"kind": "value", "type": kind}


# --- text


def _doc(x: Any) -> str:
    """A docstring without its examples."""
    text = inspect.cleandoc(getattr(x, "__doc__", None) or "")
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith(">>> ")), len(lines))
    return "\n".join(lines[:first]).rstrip()


def _example(x: Any) -> dict[str, Any]:
    """The entry `example`, where there is one that other languages can have."""
    example = example_of(x)
    return {} if example is None else {"example": example}


_ERRORS = tuple(k for k, v in vars(errors).items() if isinstance(v, type))


def _raises(doc: str) -> list[str]:
    """The errors that a docstring's sentences beginning with "Raises" name."""
    sentences = re.findall(r"\bRaises\b(.*?)(?:\.\s|\.$|$)", doc, re.DOTALL)
    words = re.findall(r"\w+", " ".join(sentences))
    return [e.rstrip("_") for e in _ERRORS if e in words]


def _looked_up(table: dict[str, Any], key: str, what: str) -> Any:
    if key not in table:
        raise InternalError(
            f"manifest: expected an entry of polygrad/manifest/reviewed.py for {what}, got none"
        )
    return table[key]
