"""Archives of Python modules as bytecode.

Runs inside of Pyodide, because bytecode only fits the Python that compiled it: when polygrad is built, and
when it is started with a wheel of the caller's.
"""

import importlib.util
import io
import marshal
import zipfile

_UNCHECKED_HASH = 1  # PEP 552: bytecode that is never compared with its source


def _bytecode(source: bytes, path: str) -> bytes:
    code = compile(source, path, "exec", dont_inherit=True)
    flags = _UNCHECKED_HASH.to_bytes(4, "little")
    return importlib.util.MAGIC_NUMBER + flags + importlib.util.source_hash(source) + marshal.dumps(code)


def bundle(
    source: str,
    place: str,
    keep: list[str] | None,
    without_text: list[str],
    extra: dict[str, bytes],
) -> bytes:
    """The zip file `source` with bytecode for every module, as it will lie at the path `place`.

    `keep`, unless None, limits it to these names; `extra` adds files. It has the text of modules, which
    tracebacks quote, except for those of `without_text`. Nothing is compressed in it: inflating bytecode
    takes longer than reading it, and text that is compressed file by file is a third longer than text that a
    server compresses as a whole.
    """
    with zipfile.ZipFile(source) as archive:
        files = {n: archive.read(n) for n in archive.namelist() if keep is None or n in keep}
    files |= {n: bytes(data) for n, data in extra.items()}
    modules = {n: data for n, data in sorted(files.items()) if n.endswith(".py")}
    others = {n: data for n, data in sorted(files.items()) if n not in modules and not n.endswith("/")}
    bytecode = {f"{n}c": _bytecode(data, f"{place}/{n}") for n, data in modules.items()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        text = {n: data for n, data in modules.items() if n not in without_text}
        for name, data in (bytecode | text | others).items():
            made.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()
