"""The layer order of the architecture holds: imports point towards the foundations only."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "polygrad"

# From the foundations upwards: a layer may import those before it, and itself. The public API is one.
ORDER = [
    {
        "background",
        "dtype",
        "environment",
        "errors",
        "helpers",
        "missing",
        "missing_names",
        "monitor",
        "shared_words",
    },
    {"wasm"},
    {"uop"},
    {"gradient"},
    {"schedule"},
    {"codegen"},
    {"renderer"},
    {"runtime"},
    {"engine"},
    {"pictures"},
    {"tensor", "capture", "nn"},
    {"distributed"},
    {"training"},
    {"models"},
    {"generation"},
    {"hf", "onnx", "export"},
    {"pipelines", "tuning"},
    {"serve"},
    {"cli"},
    {""},  # the package itself, `polygrad/__init__.py`: the public face
    {"manifest"},  # describes it
    {"bridge", "bridge_functions"},  # lets other languages call it
    {"__main__"},  # the command line: hands the version of the public face to `cli`
    {"preload"},  # imports what a loader's snapshot is to hold
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}

# Closer than the order: who must not know whom although it stands lower.
FORBIDDEN = {
    "wasm": {"dtype"},  # a pure encoder of the WebAssembly format
    "runtime": {"wasm", "uop", "gradient", "schedule", "codegen", "renderer"},  # sees Programs, never UOps
}


@dataclass(frozen=True)
class Import:
    line: int
    target: str  # the layer imported; "" is the package's public face
    in_function: bool


def layer(module: str) -> str:
    """`polygrad.uop.node` is of `uop`, `polygrad` of ``."""
    return (module.split(".") + [""])[1]


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules_named(node: ast.stmt, package: str) -> list[str]:
    """The absolute names of the modules an import statement of `package` names."""
    if isinstance(node, ast.Import):
        return [a.name for a in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    base = ".".join([*parents, *([node.module] if node.module else [])])
    # `from polygrad import uop` names a layer; `from polygrad import Tensor` the public face.
    return (
        [f"{base}.{a.name}" if a.name in RANK else base for a in node.names] if base == "polygrad" else [base]
    )


def imports(source: str, package: str) -> Iterator[Import]:
    """Every import of polygrad in `source`, whose package is `package`."""
    stack: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while stack:
        node, inside = stack.pop()
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        stack += [(child, inside) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.stmt):
            for name in modules_named(node, package):
                if name.split(".")[0] == "polygrad":
                    yield Import(node.lineno, layer(name), inside)


def violations(source: str, module: str, package: str) -> list[str]:
    own = layer(module)
    out = []
    for i in imports(source, package):
        if i.in_function:
            out.append(f"{module}:{i.line}: imports polygrad inside a function")
        if RANK[i.target] > RANK[own] or i.target in FORBIDDEN.get(own, ()):
            out.append(f"{module}:{i.line}: {own or 'polygrad'} imports {i.target or 'polygrad'}")
    return out


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=module_of)
def test_imports_point_down(path: Path) -> None:
    module = module_of(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    assert layer(module) in RANK, f"{module}: its layer is not in ORDER"
    assert violations(path.read_text(encoding="utf-8"), module, package) == []


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from polygrad.engine import realize", "polygrad.uop.node"),
        ("from polygrad import engine", "polygrad.uop.node"),
        ("import polygrad.tensor", "polygrad.engine.realize"),
        ("from ..tensor import Tensor", "polygrad.engine.realize"),
        ("from polygrad import Tensor", "polygrad.nn.optim"),
        ("from polygrad.uop.node import UOp", "polygrad.runtime.wasm.device"),
        ("def f():\n    from polygrad.helpers import prod", "polygrad.uop.node"),
        ("if TYPE_CHECKING:\n    from polygrad.engine.realize import realize", "polygrad.uop.node"),
    ],
)
def test_an_upward_import_is_seen(source: str, module: str) -> None:
    assert violations(source, module, module.rpartition(".")[0])


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from polygrad.helpers import prod", "polygrad.uop.node"),
        ("from . import ops", "polygrad.uop.node"),
        ("from polygrad.nn.state import get_parameters", "polygrad.nn.optim"),
        ("import math", "polygrad.uop.node"),
    ],
)
def test_a_downward_import_is_allowed(source: str, module: str) -> None:
    assert not violations(source, module, module.rpartition(".")[0])


@pytest.mark.parametrize("folder", ["wasm", "uop", "schedule", "codegen", "renderer", "runtime", "engine"])
def test_modules_of_the_compiler_form_no_circle(folder: str) -> None:
    """Imports for annotations alone count, too."""
    graph = {}
    for path in (PACKAGE / folder).rglob("*.py"):
        module = module_of(path)
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        graph[module] = {m for n in tree if isinstance(n, ast.stmt) for m in modules_named(n, package)}
    order = list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError
    assert set(graph) <= set(order)


def test_folders_say_what_prefixes_would() -> None:
    """A file does not repeat the name of its folder."""
    paths = [path for path in PACKAGE.rglob("*.py") if path.stem.startswith(f"{path.parent.name}_")]
    assert paths == []


def test_importing_polygrad_takes_the_standard_library_alone() -> None:
    """No device is opened and nothing large is imported before it is needed."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "from polygrad import Device, Tensor, nn\n"
        "new = {m.partition('.')[0] for m in set(sys.modules) - before}\n"
        "print(sorted(new - sys.stdlib_module_names - {'polygrad'}))\n"
        "print(sorted(new & {'asyncio', 'ctypes', 'unittest'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]


def prints_to_standard_output(source: str) -> list[int]:
    """The lines that call `print` without `file=sys.stderr`."""
    calls = [
        n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call) and ast.unparse(n.func) == "print"
    ]
    return [n.lineno for n in calls if "file=sys.stderr" not in map(ast.unparse, n.keywords)]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=module_of)
def test_standard_output_is_the_programs(path: Path) -> None:
    assert prints_to_standard_output(path.read_text(encoding="utf-8")) == []


def test_a_print_is_seen() -> None:
    assert prints_to_standard_output("import sys\nprint(1, file=sys.stderr)\nprint(2)") == [3]


def test_what_pages_are_sent_imports_nothing_that_they_are_not() -> None:
    assets = (PACKAGE.parent / "scripts" / "assets.mjs").read_text(encoding="utf-8")
    patterns = re.findall(r"String\.raw`([^`]+)`", assets)
    native = {
        module_of(path)
        for path in PACKAGE.rglob("*.py")
        if any(re.search(p, path.relative_to(PACKAGE.parent).as_posix()) for p in patterns)
    }
    assert "polygrad.renderer.llvm.builder" in native and "polygrad.renderer.wgsl.builder" not in native
    for path in PACKAGE.rglob("*.py"):
        module = module_of(path)
        if module in native:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                named = {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
                assert native.isdisjoint(named), f"{module}:{node.lineno}"
