"""What libpolygrad is built to: the Debian package and the wheel work where they are unpacked; the library
has no data that is written, and ends no process."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from c_compiler import needs_c_compiler
from c_library import FOLDER, build

pytestmark = [
    needs_c_compiler,
    pytest.mark.skipif(sys.platform != "linux", reason="packages for Linux"),
]
PROGRAM = """#include <polygrad.h>
int main(void) { return pg_get_api(PG_API_VERSION)->check("PGRX", 4, 0) != PG_FORMAT; }
"""


def made(kind: str, folder: Path) -> Path:
    command = [sys.executable, FOLDER / "package.py", kind, folder]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def compiles_and_runs(folder: Path, *flags: str) -> None:
    (folder / "p.c").write_text(PROGRAM)
    subprocess.run(
        ["cc", "-std=c11", "p.c", "-o", "p", *flags, "-pthread", "-ldl", "-lm"], cwd=folder, check=True
    )
    subprocess.run([folder / "p"], check=True)


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg-deb")
def test_the_debian_package(tmp_path: Path) -> None:
    package = made("deb", tmp_path)
    subprocess.run(["dpkg-deb", "-x", package, tmp_path / "root"], check=True)
    fields = subprocess.run(["dpkg-deb", "-f", package], check=True, capture_output=True, text=True).stdout
    assert "Package: libpolygrad\nVersion: 0.1.0\n" in fields
    usr = tmp_path / "root" / "usr"
    (library,) = usr.glob("lib/*/libpolygrad.so.0")
    compiles_and_runs(tmp_path, f"-I{usr / 'include'}", str(library), f"-Wl,-rpath,{library.parent}")
    compiles_and_runs(tmp_path, f"-I{usr / 'include'}", str(library.with_name("libpolygrad.a")))
    assert "-lpolygrad" in (library.parent / "pkgconfig" / "polygrad.pc").read_text(encoding="utf-8")


def test_the_wheel(tmp_path: Path) -> None:
    wheel = made("wheel", tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
        recorded = archive.read("polygrad_c-0.1.0.dist-info/RECORD").decode().splitlines()
        assert sorted(line.split(",")[0] for line in recorded) == sorted(archive.namelist())
    code = "import polygrad_c; print(polygrad_c.include()); print(polygrad_c.library())"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "site", capture_output=True, text=True)
    include, library = done.stdout.split()
    assert ctypes.CDLL(library).pg_get_api(1)
    compiles_and_runs(tmp_path, f"-I{include}", str(Path(library).with_name("libpolygrad.a")))


@pytest.mark.skipif(shutil.which("nm") is None, reason="there are no binutils")
def test_the_library_exports_one_function_has_no_state_and_ends_no_process() -> None:
    folder = build()

    def lines(*command: str) -> list[list[str]]:
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        return [line.split() for line in done.stdout.splitlines()]

    for library, option in (("libpolygrad.so", "-gD"), ("libpolygrad.a", "-g")):
        symbols = [line[-2:] for line in lines("nm", option, library) if len(line) > 1]
        assert [name for kind, name in symbols if kind not in "Uw"] == ["pg_get_api"]
        used = {name.split("@")[0] for kind, name in symbols if kind == "U"}
        assert {"malloc", "mmap"} <= used
        assert (
            used & {"abort", "exit", "_exit", "raise", "signal", "sigaction", "printf", "puts", "setlocale"}
            == set()
        )
    objects = [path.name for path in folder.glob("*.o") if path.name != "all.o"]
    assert len(objects) >= 10
    for name in objects:
        sizes = {
            line[0]: int(line[1])
            for line in lines("size", "-A", name)
            if len(line) == 3 and line[0][0] == "."
        }
        assert {x: sizes.get(x, 0) for x in (".data", ".bss", ".tdata", ".tbss")} == {
            ".data": 0, ".bss": 0, ".tdata": 0, ".tbss": 0,
        }  # fmt: skip
