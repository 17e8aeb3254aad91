"""Write what libpolygrad's bindings have of its manifest: types, constants, the table of functions.

    python scripts/generate_bindings.py [--check]

Each language gets a file of declarations, and those whose bindings compile C a copy of the header. What users
call is written by hand on top of them. With `--check` nothing is written; the status is 1 when a file is not
what it would be.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIBRARY = Path(__file__).parent.parent / "libpolygrad"
BINDINGS = LIBRARY / "bindings"
NOTICE = "Written by scripts/generate_bindings.py from libpolygrad/manifest.json: do not edit."
Json = dict[str, Any]

RUST_TYPES = {
    "void": "c_void",
    "char": "c_char",
    "double": "f64",
    "int32_t": "i32",
    "uint32_t": "u32",
    "int64_t": "i64",
    "uint64_t": "u64",
}
JULIA_TYPES = {
    "void": "Cvoid",
    "char": "UInt8",
    "double": "Cdouble",
    "int32_t": "Int32",
    "uint32_t": "UInt32",
    "int64_t": "Int64",
    "uint64_t": "UInt64",
}


def constants(manifest: Json, kind: str) -> list[Json]:
    """The values of a type of constants."""
    groups = {group["type"]: group["values"] for group in manifest["constants"]}
    found: list[Json] = groups[kind]
    return found


def errors(manifest: Json) -> list[Json]:
    """The statuses that are errors."""
    return [status for status in constants(manifest, "pg_status") if status["value"] != 0]


def camel(constant: str) -> str:
    """Of PG_NO_ENGINE: NoEngine; of PG_FP8E4M3: Fp8E4M3."""
    text = "".join(word.capitalize() for word in constant.removeprefix("PG_").split("_"))
    return re.sub(r"e(\d)m(\d)", r"E\1M\2", text)


def snake(constant: str) -> str:
    """Of PG_NO_ENGINE: no_engine."""
    return constant.removeprefix("PG_").lower()


def comment(text: str, mark: str, indent: str = "") -> str:
    """Lines of comments."""
    lines = textwrap.wrap(text, 96 - len(indent), break_on_hyphens=False)
    return "".join(f"{indent}{mark} {line}\n" for line in lines)


def split(c_type: str) -> tuple[bool, str, int]:
    """Whether a type points to constant data, what it points to, and how many stars it has."""
    stars = c_type.count("*")
    base = c_type.rstrip("* ")
    return base.startswith("const "), base.removeprefix("const "), stars


# Rust: the types and the table of `extern "C"` functions; enums of errors and dtypes.


def rust_type(c_type: str) -> str:
    is_const, base, stars = split(c_type)
    text = RUST_TYPES.get(base, base)
    for level in range(stars):
        text = f"*{'const' if is_const and level == 0 else 'mut'} {text}"
    return text


def rust_function(function: Json) -> str:
    """A field of the table, broken as rustfmt breaks it."""
    params = [f"{p['name']}: {rust_type(p['type'])}" for p in function["params"]]
    result = "" if function["returns"] == "void" else f" -> {rust_type(function['returns'])}"
    start, kind = f"    pub {function['name']}:", 'unsafe extern "C" fn('
    whole = f"{kind}{', '.join(params)}){result},\n"
    broken = f"{kind}\n{''.join(f'        {p},{chr(10)}' for p in params)}    ){result},\n"
    lines = [f"{start} {whole}", f"{start}\n        {whole}", f"{start} {broken}"]
    fits = [all(len(line) <= 110 for line in text.splitlines()) for text in lines]
    return comment(function["doc"], "///", "    ") + lines[fits.index(True)]


def rust_enum(doc: str, name: str, members: list[Json], c_type: str) -> str:
    """An enum of constants, the last of which stands for all others, and its `of`, which takes C's number."""
    lines, arms = [], []
    for member in members:
        doc_lines = comment(member["doc"], "///", "    ") if "doc" in member else ""
        lines.append(f"{doc_lines}    {camel(member['name'])},\n")
        if "value" in member:
            arms.append(f"            {member['name']} => {name}::{camel(member['name'])},\n")
    arms.append(f"            _ => {name}::{camel(members[-1]['name'])},\n")
    return (
        f"{comment(doc, '///')}#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\n#[non_exhaustive]\n"
        f"pub enum {name} {{\n{''.join(lines)}}}\n\nimpl {name} {{\n"
        f"    pub(crate) fn of(number: {c_type}) -> {name} {{\n        match number {{\n{''.join(arms)}"
        "        }\n    }\n}\n"
    )


def rust(manifest: Json) -> str:
    out = [
        comment(f"The declarations of libpolygrad. {NOTICE}", "//!"),
        "#![allow(dead_code, non_camel_case_types)]\n",
        "use std::os::raw::{c_char, c_void};\n",
        f"pub const PG_API_VERSION: u32 = {manifest['version']};\n",
    ]
    for group in manifest["constants"]:
        lines = [comment(group["doc"], "///"), f"pub type {group['type']} = {RUST_TYPES[group['base']]};\n"]
        lines += [f"pub const {v['name']}: {group['type']} = {v['value']};\n" for v in group["values"]]
        out.append("".join(lines))
    for handle in manifest["handles"]:
        head = f"{comment(handle['doc'], '///')}#[repr(C)]\npub struct {handle['name']}"
        out.append(f"{head} {{\n    _opaque: [u8; 0],\n}}\n")
    for struct in manifest["structs"]:
        lines = [f"{comment(struct['doc'], '///')}#[repr(C)]\npub struct {struct['name']} {{\n"]
        for field in struct["fields"]:
            text = rust_type(field["type"])
            text = f"[{text}; {field['length']}]" if "length" in field else text
            lines.append(f"    pub {field['name']}: {text},\n")
        out.append("".join([*lines, "}\n"]))
    table = "".join(map(rust_function, manifest["functions"]))
    head = "/// The table of functions.\n#[repr(C)]\npub struct pg_api {\n    pub version: u32,\n"
    out.append(f"{head}{table}}}\n")
    no_library = {
        "name": "PG_NO_LIBRARY",
        "doc": "There is no libpolygrad where it was looked for, or one that is older than this crate.",
    }
    kinds = [
        no_library,
        *errors(manifest),
        {"name": "PG_OTHER", "doc": "An error that this crate does not know."},
    ]
    dtypes = [
        *constants(manifest, "pg_dtype"),
        {"name": "PG_OTHER", "doc": "One that this crate does not know."},
    ]
    out.append(rust_enum("What kind of error it is.", "ErrorKind", kinds, "pg_status"))
    out.append(rust_enum("The type of a tensor's elements.", "DType", dtypes, "pg_dtype"))
    return "\n".join(out)


# Go: constants, and C functions that call what the table points to, which cgo cannot.


def go_constants(kind: str, prefix: str, members: list[Json]) -> str:
    names = [prefix + camel(member["name"]) for member in members]
    width = 0 if all("doc" in member for member in members) else max(map(len, names))  # as gofmt aligns them
    lines = ["const (\n"]
    for name, member in zip(names, members, strict=True):
        lines.append(comment(member.get("doc", ""), "//", "\t"))
        lines.append(f"\t{name:<{width}} {kind} = {member['value']}\n")
    return "".join([*lines, ")\n"])


def go_names(variable: str, kind: str, prefix: str, members: list[Json]) -> str:
    keys = [f"{prefix}{camel(member['name'])}:" for member in members]
    width = max(map(len, keys))
    lines = [
        f'\t{key:<{width}} "{snake(member["name"])}",\n' for key, member in zip(keys, members, strict=True)
    ]
    return f"var {variable} = map[{kind}]string{{\n{''.join(lines)}}}\n"


def go(manifest: Json) -> str:
    kinds, dtypes = errors(manifest), constants(manifest, "pg_dtype")
    out = [
        "// Code generated by scripts/generate_bindings.py from libpolygrad/manifest.json. DO NOT EDIT.\n",
        "package polygrad\n",
        "// Kind is what kind of error it is.\ntype Kind int32\n",
        go_constants("Kind", "Err", kinds),
        go_names("kindNames", "Kind", "Err", kinds),
        "// DType is the type of a tensor's elements.\ntype DType int32\n",
        go_constants("DType", "", dtypes),
        go_names("dtypeNames", "DType", "", dtypes),
    ]
    return "\n".join(out)


def go_calls(manifest: Json) -> str:
    out = [f"/* Calls of the functions in libpolygrad's table.\n * {NOTICE} */\n", '#include "polygrad.h"\n']
    for function in manifest["functions"]:
        params = "".join(f", {c_declaration(p['type'], p['name'])}" for p in function["params"])
        names = ", ".join(p["name"] for p in function["params"])
        result = c_declaration(function["returns"], f"call_{function['name']}")
        word = "" if function["returns"] == "void" else "return "
        body = f"{{\n  {word}api->{function['name']}({names});\n}}\n"
        out.append(f"static inline {result}(const pg_api *api{params}) {body}")
    return "\n".join(out)


def c_declaration(c_type: str, name: str) -> str:
    return f"{c_type}{name}" if c_type.endswith("*") else f"{c_type} {name}"


# R: the names of statuses and dtypes, in the order of their numbers.


def r(manifest: Json) -> str:
    out = [comment(NOTICE, "#")]
    for name, members in [
        ("status_names", errors(manifest)),
        ("dtype_names", constants(manifest, "pg_dtype")),
    ]:
        lines = ",\n".join(f"  {snake(m['name'])} = {m['value']}L" for m in members)
        out.append(f"{name} <- c(\n{lines}\n)\n")
    return "\n".join(out)


# Julia: the structs, and a function for each of the table.


def julia_type(c_type: str) -> str:
    _, base, stars = split(c_type)
    text = JULIA_TYPES.get(base, base)
    for _ in range(stars):
        text = f"Ptr{{{text}}}"
    return text


def julia(manifest: Json) -> str:
    out = [
        comment(f"The declarations of libpolygrad. {NOTICE}", "#"),
        f"const PG_API_VERSION = UInt32({manifest['version']})\n",
    ]
    for group in manifest["constants"]:
        base = JULIA_TYPES[group["base"]]
        lines = [comment(group["doc"], "#"), f"const {group['type']} = {base}\n"]
        lines += [f"const {v['name']} = {base}({v['value']})\n" for v in group["values"]]
        out.append("".join(lines))
    for handle in manifest["handles"]:
        out.append(f"{comment(handle['doc'], '#')}mutable struct {handle['name']} end\n")
    for struct in manifest["structs"]:
        lines = [f"{comment(struct['doc'], '#')}struct {struct['name']}\n"]
        for field in struct["fields"]:
            text = julia_type(field["type"])
            text = f"NTuple{{{field['length']}, {text}}}" if "length" in field else text
            lines.append(f"    {field['name']}::{text}\n")
        out.append("".join([*lines, "end\n"]))
    fields = "".join(f"    {function['name']}::Ptr{{Cvoid}}\n" for function in manifest["functions"])
    out.append(f"# The table of functions.\nstruct pg_api\n    version::UInt32\n{fields}end\n")
    statuses = "".join(f"    {m['value']} => :{snake(m['name'])},\n" for m in errors(manifest))
    out.append(f"const STATUS_NAMES = Dict{{Int32, Symbol}}(\n{statuses})\n")
    out += map(julia_function, manifest["functions"])
    return "\n".join(out)


def julia_function(function: Json) -> str:
    """A function that calls what the table points to. Text that it is given is a String."""
    names = "".join(f", {p['name']}" for p in function["params"])
    types = ["Cstring" if p["type"] == "const char *" else julia_type(p["type"]) for p in function["params"]]
    arguments = [f"{p['name']}::{t}" for p, t in zip(function["params"], types, strict=True)]
    result = julia_type(function["returns"])
    call = f"    return @ccall $(api.{function['name']})({', '.join(arguments)})::{result}\n"
    if len(call) > 93:
        lines = "".join(f"        {a},\n" for a in arguments)
        call = f"    return @ccall $(api.{function['name']})(\n{lines}    )::{result}\n"
    return f"{comment(function['doc'], '#')}function call_{function['name']}(api::pg_api{names})\n{call}end\n"


def header(manifest: Json) -> str:
    """The header as it is: packages of Go and R have all that they are compiled from."""
    return (LIBRARY / "include" / "polygrad.h").read_text(encoding="utf-8")


FILES: dict[str, Callable[[Json], str]] = {
    "rust/src/declarations.rs": rust,
    "go/polygrad.h": header,
    "go/calls.h": go_calls,
    "go/constants.go": go,
    "r/src/polygrad.h": header,
    "r/R/constants.R": r,
    "julia/src/declarations.jl": julia,
}


def main(arguments: list[str]) -> int:
    manifest = json.loads((LIBRARY / "manifest.json").read_text(encoding="utf-8"))
    stale = []
    for name, write in FILES.items():
        path, text = BINDINGS / name, write(manifest)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if arguments != ["--check"]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if stale and arguments == ["--check"]:
        print(
            f"bindings of libpolygrad: {', '.join(stale)} is not what the manifest says: run "
            "python scripts/generate_bindings.py",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
