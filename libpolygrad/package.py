"""Write libpolygrad as a Debian package, or as a wheel.

    python libpolygrad/package.py deb|wheel [FOLDER]

Both have the header, the shared library and the static one, built for this machine; FOLDER is `dist` unless
given.
The wheel is the package `polygrad_c`, whose `include()` and `library()` are their paths.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
VERSION = "0.1.0"
SUMMARY = "Runs and trains models that polygrad exported, without Python"
CONTROL = """Package: libpolygrad
Version: {version}
Architecture: {architecture}
Maintainer: polygrad
Section: libs
Priority: optional
Depends: libc6
Description: {summary}
 A C library for .pgrd files. Models for WASM need wasmtime's shared library.
"""
INIT = '''"""libpolygrad for C: where its header and its libraries are."""

from pathlib import Path

_HERE = Path(__file__).parent


def include() -> str:
    """The folder of polygrad.h."""
    return str(_HERE / "include")


def library() -> str:
    """The path of the shared library."""
    return str(_HERE / "lib" / "libpolygrad.so")
'''


def install(folder: Path, *variables: str) -> None:
    command = ["make", "-s", "-C", str(HERE), "install", f"DESTDIR={folder}", *variables]
    subprocess.run(command, check=True)


def deb(out: Path) -> Path:
    """Write the Debian package; its path."""
    architecture, triplet = _output("dpkg", "--print-architecture"), _output("cc", "-print-multiarch")
    path = out / f"libpolygrad_{VERSION}_{architecture}.deb"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        install(folder, "PREFIX=/usr", f"LIBDIR=/usr/lib/{triplet}")
        (folder / "DEBIAN").mkdir()
        text = CONTROL.format(version=VERSION, architecture=architecture, summary=SUMMARY)
        (folder / "DEBIAN" / "control").write_text(text)
        (folder / "DEBIAN" / "triggers").write_text("activate-noawait ldconfig\n")
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", folder, path], check=True, stdout=2)
    return path


def wheel(out: Path) -> Path:
    """Write the wheel; its path."""
    tag = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    path = out / f"polygrad_c-{VERSION}-{tag}.whl"
    info = f"polygrad_c-{VERSION}.dist-info"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install(folder, "PREFIX=/usr", "LIBDIR=/usr/lib")
        root = folder / "usr"
        files = {
            "polygrad_c/__init__.py": INIT.encode(),
            "polygrad_c/include/polygrad.h": (root / "include/polygrad.h").read_bytes(),
            "polygrad_c/lib/libpolygrad.so": (root / "lib/libpolygrad.so").read_bytes(),
            "polygrad_c/lib/libpolygrad.a": (root / "lib/libpolygrad.a").read_bytes(),
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: polygrad-c\nVersion: {VERSION}\n"
            f"Summary: {SUMMARY}\nRequires-Python: >=3.8\n".encode(),
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: polygrad\nRoot-Is-Purelib: false\n"
            f"Tag: {tag}\n".encode(),
        }
    lines = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""]).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main(arguments: list[str]) -> None:
    kinds = {"deb": deb, "wheel": wheel}
    if len(arguments) not in (1, 2) or arguments[0] not in kinds:
        raise SystemExit(__doc__)
    out = Path(arguments[1] if len(arguments) == 2 else "dist")
    out.mkdir(parents=True, exist_ok=True)
    print(kinds[arguments[0]](out))


if __name__ == "__main__":
    main(sys.argv[1:])
