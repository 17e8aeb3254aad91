"""Write libpolygrad's header from its manifest; with `--check`, compare.

    python scripts/c_header.py [--check]

`libpolygrad/manifest.json` is the interface as data: bindings are generated from it, too.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "libpolygrad"
HEADER = FOLDER / "include" / "polygrad.h"
_WIDTH = 108
_JOINT = "\u00a0"  # a space where textwrap breaks no line
Json = dict[str, Any]


def header_text(manifest: Json) -> str:
    """The text of the header."""
    version = manifest["version"]
    parts = [
        _comment(f"{manifest['doc']} Written by scripts/c_header.py from manifest.json.", *manifest["notes"]),
        "#ifndef POLYGRAD_H\n#define POLYGRAD_H\n\n#include <stddef.h>\n#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        f"#define PG_API_VERSION {version}u\n",
        '#if defined(__GNUC__)\n#define PG_EXPORT __attribute__((visibility("default")))\n'
        "#else\n#define PG_EXPORT\n#endif\n",
        *[f"{_comment(h['doc'])}typedef struct {h['name']} {h['name']};\n" for h in manifest["handles"]],
        *map(_constants, manifest["constants"]),
        *map(_struct, manifest["structs"]),
        _table(manifest["functions"]),
        _comment(
            "The table with the functions of all versions up to `version`, which a program passes as "
            "PG_API_VERSION; NULL where this library is older."
        )
        + f"PG_EXPORT const pg_api *{manifest['symbol']}(uint32_t version);\n",
        "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
    ]
    return "\n".join(parts)


def _comment(*paragraphs: str, indent: str = "") -> str:
    width = _WIDTH - len(indent)
    texts = [textwrap.wrap(p, width - 6, break_on_hyphens=False) for p in paragraphs]
    lines = [line for i, text in enumerate(texts) for line in ([""] if i else []) + text]
    middle = "".join(f"\n{indent} * {line}".rstrip() for line in lines[1:])
    return f"{indent}/* {lines[0]}{middle} */\n"


def _declare(kind: str, name: str) -> str:
    return f"{kind}{name}" if kind.endswith("*") else f"{kind} {name}"


def _constants(group: Json) -> str:
    lines = [_comment(group["doc"]) + f"typedef {group['base']} {group['type']};\n"]
    unsigned = "u" if group["base"].startswith("u") else ""
    for value in group["values"]:
        doc = _comment(value["doc"]) if "doc" in value else ""
        lines.append(f"{doc}#define {value['name']} {value['value']}{unsigned}\n")
    return "".join(lines)


def _struct(struct: Json) -> str:
    lines = [_comment(struct["doc"]), f"typedef struct {struct['name']} {{\n"]
    for field in struct["fields"]:
        if "doc" in field:
            lines.append(_comment(field["doc"], indent="  "))
        length = f"[{field['length']}]" if "length" in field else ""
        lines.append(f"  {_declare(field['type'], field['name'])}{length};\n")
    return "".join([*lines, f"}} {struct['name']};\n"])


def _table(functions: list[Json]) -> str:
    lines = [
        _comment("The functions. Each says since which version of the table it is there."),
        "typedef struct pg_api {\n",
        "  /* The version of this table: it may be greater than the one that was asked for. */\n",
        "  uint32_t version;\n",
    ]
    for function in functions:
        lines += ["\n", _comment(*_function_doc(function), indent="  ")]
        params = ", ".join(_declare(p["type"], p["name"]) for p in function["params"]) or "void"
        start = _declare(function["returns"], f"(*{function['name']})(")
        # A parameter stays in one line.
        whole = f"{start}{params});".replace(" ", _JOINT).replace(f",{_JOINT}", ", ")
        text = textwrap.wrap(whole, _WIDTH, initial_indent="  ", subsequent_indent="      ")
        lines.append("\n".join(text).replace(_JOINT, " ") + "\n")
    return "".join([*lines, "} pg_api;\n"])


def _function_doc(function: Json) -> list[str]:
    """Paragraphs: what it does, its parameters, its errors."""
    notes = [f"{p['name']}: {_param_doc(p)}" for p in function["params"] if _param_doc(p)]
    last = [f"Errors: {', '.join(function['errors'])}."] if "errors" in function else []
    owner = {"library": "The result is the library's.", "model": "The result is the model's."}
    if "result_owner" in function:
        last.append(owner[function["result_owner"]])
    last.append(f"Since version {function['since']}.")
    return [function["doc"], *([" ".join(notes)] if notes else []), " ".join(last)]


def _param_doc(param: Json) -> str:
    owner = {"model": "The model's.", "taken": "It is gone afterwards."}.get(param.get("owner", ""), "")
    may_be_null = "May be NULL." if param.get("nullable") and "doc" not in param and not owner else ""
    skipped = param["name"] == "error"
    return "" if skipped else " ".join(filter(None, [param.get("doc", ""), owner, may_be_null]))


def main(arguments: list[str]) -> int:
    text = header_text(json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8")))
    if arguments == ["--check"]:
        if HEADER.read_text(encoding="utf-8") == text:
            return 0
        print(f"{HEADER}: it is not what the manifest says: run python scripts/c_header.py", file=sys.stderr)
        return 1
    HEADER.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
