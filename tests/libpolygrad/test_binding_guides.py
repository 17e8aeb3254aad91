"""The snippets of the guides for C, Rust, Go and R print what the `text` blocks after them say. Julia's
parse.

Each page's snippets are one program after the other; those that are no program are joined to one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from c_compiler import needs_c_compiler
from c_library import FOLDER, build
from language_bindings import LANGUAGES, julia_faults, libraries

GUIDES = FOLDER.parent / "docs" / "guides"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[tuple[str, str]]:
    """Each snippet of a language, and what it prints."""
    text = (GUIDES / page).read_text(encoding="utf-8")
    return [(source, printed or "") for name, source, printed in BLOCK.findall(text) if name == language]


def programs(language: str, is_program: Callable[[str], bool]) -> list[tuple[str, str]]:
    """The programs of a page: those that are one, and all other snippets as one."""
    found = blocks(f"from_{language}.md", language)
    whole = [block for block in found if is_program(block[0])]
    parts = [block for block in found if not is_program(block[0])]
    assert found and all(printed for _, printed in whole)
    return [*whole, ("".join(s for s, _ in parts), "".join(p for _, p in parts))] if parts else whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that a snippet of the guide of saving writes."""
    folder = tmp_path_factory.mktemp("exported")
    (source,) = [source for source, _ in blocks("saving.md", "python") if '"classifier.pgrd"' in source]
    subprocess.run([sys.executable, "-c", source], cwd=folder, check=True, capture_output=True)
    return folder


def prints(folder: Path, *command: object, **environment: str) -> str:
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=os.environ | libraries() | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def rust(folder: Path) -> None:
    project = folder / "rust"
    (project / "src" / "bin").mkdir(parents=True, exist_ok=True)
    (project / "Cargo.toml").write_text(
        '[package]\nname = "guide"\nversion = "0.1.0"\nedition = "2021"\n\n'
        f'[dependencies]\npolygrad = {{ path = "{FOLDER / "bindings" / "rust"}" }}\n'
    )
    for i, (source, printed) in enumerate(programs("rust", lambda source: "fn main()" in source)):
        if "fn main()" not in source:
            source = f"use polygrad::Model;\nfn main() -> polygrad::Result<()> {{\n{source}Ok(())\n}}\n"
        (project / "src" / "bin" / f"guide{i}.rs").write_text(source)
        target = str(FOLDER.parent / "build" / "bindings" / "rust")
        command = ["cargo", "run", "-q", "--offline", "--manifest-path", project / "Cargo.toml"]
        assert prints(folder, *command, "--bin", f"guide{i}", CARGO_TARGET_DIR=target) == printed


def go(folder: Path) -> None:
    project = folder / "go"
    project.mkdir(exist_ok=True)
    (project / "go.mod").write_text(
        "module guide\n\ngo 1.19\n\nrequire polygrad v0.0.0\n\n"
        f"replace polygrad v0.0.0 => {FOLDER / 'bindings' / 'go'}\n"
    )
    for i, (source, printed) in enumerate(programs("go", lambda source: "package main" in source)):
        if "package main" not in source:
            names = [name for name in ("context", "errors", "fmt", "time") if f"{name}." in source]
            imports = "".join(f'import "{name}"\n' for name in [*names, "log", "polygrad"])
            body = f"func snippets() error {{\n{source}return nil\n}}\n"
            main = "func main() {\nif err := snippets(); err != nil {\nlog.Fatal(err)\n}\n}\n"
            source = f"package main\n\n{imports}\n{body}\n{main}"
        (project / f"guide{i}").mkdir(exist_ok=True)
        (project / f"guide{i}" / "main.go").write_text(source)
        prints(project, "go", "build", "-o", folder / f"guide{i}", f"./guide{i}")
        assert prints(folder, folder / f"guide{i}") == printed


def r(folder: Path) -> None:
    ((source, printed),) = programs("r", lambda source: False)
    (folder / "guide.R").write_text(source)
    library = FOLDER.parent / "build" / "bindings" / "r" / "library"
    prints(folder, FOLDER / "bindings" / "run.sh", "r", "install")
    assert prints(folder, "Rscript", "guide.R", R_LIBS=str(library)) == printed


@pytest.mark.parametrize("name", LANGUAGES)
@needs_c_compiler
def test_the_snippets_of_a_guide_print_what_it_says(name: str, folder: Path) -> None:
    {"rust": rust, "go": go, "r": r}[name](folder)


@needs_c_compiler
def test_the_programs_in_c_print_what_the_guide_says(folder: Path) -> None:
    library = build()
    found = blocks("from_c.md", "c")
    assert len(found) == 2
    for i, (source, printed) in enumerate(found):
        (folder / f"guide{i}.c").write_text(source)
        command = ["cc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{FOLDER / 'include'}"]
        prints(folder, *command, f"guide{i}.c", f"-L{library}", "-lpolygrad", "-o", f"guide{i}_c")
        assert prints(folder, folder / f"guide{i}_c", LD_LIBRARY_PATH=str(library)) == printed


def test_the_snippets_of_julia_parse(tmp_path: Path) -> None:
    for i, (source, _) in enumerate(blocks("from_julia.md", "julia")):
        (tmp_path / f"snippet{i}.jl").write_text(source)
    assert len(list(tmp_path.iterdir())) > 3 and julia_faults(tmp_path) == []
