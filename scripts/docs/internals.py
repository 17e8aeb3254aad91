"""The section Internals: the docstrings of the packages and their modules, a page for each package."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    *("uop", "schedule", "codegen/kernels", "codegen/opts", "codegen/lower"),
    *("renderer", "renderer/llvm", "renderer/wasm", "renderer/cstyle", "renderer/wgsl"),
    *("runtime", "runtime/cpu", "runtime/wasm", "runtime/webgpu", "runtime/cuda", "runtime/metal"),
    *("runtime/interp",),
    *("engine", "capture", "tensor/core", "tensor", "nn", "models", "generation", "hf", "onnx"),
)  # fmt: skip


def pages(to_markdown: Callable[[str], str]) -> dict[str, str]:
    """The path of each page in the documentation, and its text."""
    return {f"internals/{name.replace('/', '_')}.md": _page(name, to_markdown) for name in PACKAGES}


def _page(package: str, to_markdown: Callable[[str], str]) -> str:
    folder = ROOT / "polygrad" / package
    parts = [f"# polygrad.{package.replace('/', '.')}", to_markdown(docstring(folder / "__init__.py"))]
    for path in sorted(folder.glob("*.py")):
        if path.name != "__init__.py":
            parts += [f"## {path.name}", to_markdown(docstring(path))]
    return "\n\n".join(parts) + "\n"


def docstring(path: Path) -> str:
    """The docstring of a module, which is not imported."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
