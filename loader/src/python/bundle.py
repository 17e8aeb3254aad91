"""Archives of Python modules as bytecode.

Runs inside Pyodide, because bytecode fits the Python that compiled it and no other: when polygrad is built,
and when it is started with a wheel of the caller's.
"""

import importlib.util
import io
import marshal
import zipfile
from collections.abc import Container

_UNCHECKED_HASH = 1  # PEP 552: bytecode that is never compared with its source


def _bytecode(source: bytes, path: str) -> bytes:
    code = compile(source, path, "exec", dont_inherit=True)
    flags = _UNCHECKED_HASH.to_bytes(4, "little")
    return importlib.util.MAGIC_NUMBER + flags + importlib.util.source_hash(source) + marshal.dumps(code)


def bundle(
    source: str,
    place: str,
    keep: Container[str] | None = None,
    sources: bool = True,
    extra: dict[str, bytes] | None = None,
) -> bytes:
    """The zip file `source` with bytecode for every module, as it will lie at the path `place`.

    `keep` limits it to these names; `extra` adds files. Bytecode is stored, because inflating it takes longer
    than reading it; the rest is deflated. `sources` keeps the modules' text too, which tracebacks quote.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(out, "w") as made:
        files = {n: archive.read(n) for n in archive.namelist() if keep is None or n in keep}
        for name, data in sorted({**files, **{n: bytes(data) for n, data in (extra or {}).items()}}.items()):
            if name.endswith("/"):
                continue
            if name.endswith(".py"):
                made.writestr(zipfile.ZipInfo(name + "c"), _bytecode(data, f"{place}/{name}"))
            if sources or not name.endswith(".py"):
                made.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()
