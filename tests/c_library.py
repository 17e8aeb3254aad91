"""libpolygrad through ctypes: its types and functions are made of the manifest, as other languages' are.

The library is built on first use. A status other than PG_OK is a `PgError`.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "libpolygrad"
MANIFEST: dict[str, Any] = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
NUMBERS = {v["name"]: v["value"] for group in MANIFEST["constants"] for v in group["values"]}
STATUS = {v["value"]: v["name"] for v in MANIFEST["constants"][0]["values"]}
INPUT, OUTPUT, VALUE = (NUMBERS[f"PG_{role}"] for role in ("INPUT", "OUTPUT", "VALUE"))
TRUST_NATIVE, STOPPABLE, TRUST_DIGESTS = (
    NUMBERS[f"PG_{flag}"] for flag in ("TRUST_NATIVE", "STOPPABLE", "TRUST_DIGESTS")
)

_PLAIN = {
    "void": None,
    "char": ctypes.c_char,
    "double": ctypes.c_double,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
}
_PLAIN |= {group["type"]: _PLAIN[group["base"]] for group in MANIFEST["constants"]}


class PgError(Exception):
    """A call that did not end with PG_OK: its status by name, and the message."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message


def _type(text: str, structs: dict[str, Any]) -> Any:
    """The ctypes type of a type of the manifest."""
    text = text.removeprefix("const ")
    if text == "char *":
        return ctypes.c_char_p
    if text.endswith("*"):
        inner = text.removesuffix("*").strip()
        inner_type = structs.get(inner) if inner in structs else _PLAIN.get(inner)
        return ctypes.c_void_p if inner_type is None or inner.endswith("*") else ctypes.POINTER(inner_type)
    return structs[text] if text in structs else _PLAIN[text]


def _structs() -> dict[str, Any]:
    made: dict[str, Any] = {}
    for struct in MANIFEST["structs"]:
        fields = []
        for field in struct["fields"]:
            t = _type(field["type"], made)
            fields.append((field["name"], t * field["length"] if "length" in field else t))
        made[struct["name"]] = type(struct["name"], (ctypes.Structure,), {"_fields_": fields})
    return made


STRUCTS = _structs()
Error, Options, TensorInfo, VariableInfo = (
    STRUCTS[name] for name in ("pg_error", "pg_options", "pg_tensor", "pg_variable")
)


@functools.cache
def build(target: str = "all", folder: str = "build", *variables: str) -> Path:
    """The folder that `make` has built the library in. Processes side by side take turns."""
    (FOLDER / folder).mkdir(parents=True, exist_ok=True)
    with open(FOLDER / folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "-s", "-C", str(FOLDER), target, f"BUILD={folder}", *variables],
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return FOLDER / folder


@functools.cache
def api() -> Any:
    """The table of functions."""
    library = ctypes.CDLL(str(build() / "libpolygrad.so"))
    fields: list[tuple[str, Any]] = [("version", ctypes.c_uint32)]
    for function in MANIFEST["functions"]:
        params = [_type(p["type"], STRUCTS) for p in function["params"]]
        params = [ctypes.c_void_p if "**" in p["type"] else t for p, t in zip(function["params"], params)]
        fields.append((function["name"], ctypes.CFUNCTYPE(_type(function["returns"], STRUCTS), *params)))
    table = type("pg_api", (ctypes.Structure,), {"_fields_": fields})
    get = getattr(library, MANIFEST["symbol"])
    get.restype, get.argtypes = ctypes.POINTER(table), [ctypes.c_uint32]
    return get(MANIFEST["version"]).contents


def call(name: str, *arguments: Any) -> None:
    """Call a function that returns a status and takes an error last. Raises PgError."""
    error = Error()
    status = getattr(api(), name)(*arguments, ctypes.byref(error))
    if status:
        assert error.status == status
        raise PgError(STATUS[status], error.message.decode())


def wasmtime_library() -> str:
    """The path of the wasmtime that Python's package has."""
    from wasmtime import _ffi

    return str(_ffi.dll._name)


def check(data: bytes) -> None:
    call("check", data, len(data))


class Model:
    """A model of the library. `source`: a path, or bytes."""

    def __init__(self, source: Any, flags: int = 0, threads: int = 0, max_bytes: int = 0) -> None:
        options = Options(
            flags=flags, threads=threads, max_bytes=max_bytes, wasmtime=wasmtime_library().encode()
        )
        handle = ctypes.c_void_p()
        if isinstance(source, (bytes, bytearray)):
            call("open_memory", bytes(source), len(source), ctypes.byref(options), ctypes.byref(handle))
        else:
            call("open_path", os.fsencode(source), ctypes.byref(options), ctypes.byref(handle))
        self.handle = handle

    def close(self) -> None:
        api().close(self.handle)
        self.handle = ctypes.c_void_p()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tensors(self, role: int, entry: int = 0) -> dict[str, Any]:
        """The descriptions of tensors, by name, in order."""
        found = {}
        for i in range(api().tensor_count(self.handle, entry, role)):
            info = TensorInfo()
            call("tensor", self.handle, entry, role, i, ctypes.byref(info))
            found[info.name.decode()] = info
        return found

    def index(self, role: int, name: str, entry: int = 0) -> int:
        index = ctypes.c_uint32()
        call("find_tensor", self.handle, entry, role, name.encode(), ctypes.byref(index))
        return index.value

    def variables(self, entry: int = 0) -> list[str]:
        names = []
        for i in range(api().variable_count(self.handle, entry)):
            info = VariableInfo()
            call("variable", self.handle, entry, i, ctypes.byref(info))
            names.append(info.name.decode())
        return names

    def write(self, name: str, array: Any, role: int = INPUT, entry: int = 0) -> None:
        data = np.ascontiguousarray(array).tobytes()
        call("write", self.handle, entry, role, self.index(role, name, entry), data, len(data))

    def read(self, name: str, role: int = OUTPUT, entry: int = 0, variables: Sequence[int] = ()) -> Any:
        index = self.index(role, name, entry)
        info = list(self.tensors(role, entry).values())[index]
        shape = (ctypes.c_int64 * max(info.rank, 1))()
        call("shape", self.handle, entry, role, index, _int64s(variables), shape)
        dtype = np.dtype(api().dtype_name(info.dtype).decode())
        out = np.empty(shape[: info.rank], dtype)
        call("read", self.handle, entry, role, index, out.ctypes.data, out.nbytes)
        return out

    def run(self, timeout: float = 0.0, entry: int = 0, **given: Any) -> dict[str, Any]:
        """Run an entry on inputs by name; the outputs by name."""
        names = self.variables(entry)
        variables = [given.pop(name) for name in names]
        for name, array in given.items():
            self.write(name, array, entry=entry)
        call("run", self.handle, entry, _int64s(variables), timeout)
        return {name: self.read(name, OUTPUT, entry, variables) for name in self.tensors(OUTPUT, entry)}

    def save(self) -> bytes:
        size = api().values_size(self.handle)
        out = ctypes.create_string_buffer(size)
        call("save_values_memory", self.handle, out, size)
        return out.raw


def _int64s(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values) if values else None
