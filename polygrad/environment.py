"""Every environment variable that polygrad reads: its meaning, its default, the values it takes.

The tables of docs/guides/debugging.md are written from here (`scripts/environment.py`), `doctor` looks for
misspelt names among these, and a test compares them with the names that the package's code asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

from polygrad.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class EnvironmentVariable:
    """`values`: in words, for tables and errors. `least`: of an integer; None for a variable that holds text.
    `own`: polygrad defines it; others are conventions of the system."""

    name: str
    meaning: str
    default: str
    values: str
    least: int | None = None
    own: bool = True


# What each level of DEBUG adds to those below it.
DEBUG_LEVELS = {
    1: "each kernel as it is made: compiled, or found on the disk; what `BEAM` found",
    2: "each Program as it runs: its launches and its time",
    3: "what kernel passes did, as `KERNEL_OPTS`; each kernel that is compiled: its Opts and linear code",
    4: "each kernel after every pass",
}


def _integer(name: str, meaning: str, default: int, least: int = 0) -> EnvironmentVariable:
    return EnvironmentVariable(name, meaning, str(default), f"an integer from {least}", least)


def _switch(name: str, meaning: str, default: int = 0) -> EnvironmentVariable:
    return EnvironmentVariable(name, meaning, str(default), "0 or 1", 0)


def _text(name: str, meaning: str, default: str, values: str, own: bool = True) -> EnvironmentVariable:
    return EnvironmentVariable(name, meaning, default, values, own=own)


VARIABLES = {
    variable.name: variable
    for variable in (
        _text(
            "DEVICE", "the default device", "CPU (in a page or Node: WASM)", "the name of a device, or auto"
        ),
        _integer("DEBUG", "what is printed on standard error, see above", 0),
        _switch("NOOPT", "kernels are not optimised"),
        _integer("BEAM", "search for faster kernels, keeping this many at a time", 0),
        _text(
            "SKIP_PASSES",
            "kernel passes that are left out, of those that only make programs faster",
            "none",
            "names as `DEBUG=3` shows them, separated by commas",
        ),
        _text(
            "KERNEL_OPTS",
            "what is done to the kernels of every graph, instead of what kernel passes decide",
            "the passes decide",
            "KernelOpts as `DEBUG=3` shows them, separated by commas, or none",
        ),
        _switch("SPEC", "graphs are verified after every pass"),
        _switch("CHECK", "indices, class labels and matrices on a device are checked where they are used"),
        _switch("ANOMALY", "every result and every gradient is looked at for NaN"),
        _text(
            "POLYGRAD_THREADS",
            "how many threads a large kernel is divided between",
            "the processors that the process may use",
            "an integer from 1 to 1024",
        ),
        _text(
            "POLYGRAD_CACHE",
            "the folder of compiled kernels and Programs",
            "`$XDG_CACHE_HOME/polygrad`",
            "a folder; off for none on disk",
        ),
        _text("POLYGRAD_DATA", "the folder of data sets", "`~/.cache/polygrad/datasets`", "a folder"),
        _text("POLYGRAD_API_KEY", "what clients of `polygrad serve` have to send", "no key", "a key"),
        _switch("POLYGRAD_VERIFY", "LLVM verifies the code of device CPU before it compiles it"),
        _integer("WASM_MEMORY_LIMIT", "the most bytes of memory of device WASM", (1 << 32) - (1 << 16)),
        _integer(
            "WASM_THREADS",
            "for how many threads kernels on WASM are made, also where one thread runs them: pages that load "
            "what is exported have threads",
            1,
        ),
        _switch("WEBGPU_F16", "device WEBGPU uses float16 where the adapter has it", 1),
        _switch("WEBGPU_SUBGROUPS", "device WEBGPU uses subgroups where the adapter has them", 1),
        _switch("ALLOW_TF32", "float32 products on device CUDA may round their operands to TF32"),
        _text("CC", "the compiler of device CC", "the first of cc, clang, gcc", "a command", own=False),
        _text("XDG_CACHE_HOME", "where caches are, of all programs", "`~/.cache`", "a folder", own=False),
    )
}


def parse_integer(name: str, text: str, default: object) -> int:
    """The value of an environment variable that is an integer. Raises ArgumentError that names it."""
    variable = VARIABLES.get(name)
    least = None if variable is None else variable.least
    try:
        value = int(text)
        if least is None or value >= least:
            return value
    except ValueError:
        pass
    values = "an integer" if variable is None else variable.values
    raise ArgumentError(
        f"environment variable {name}: expected {values}, got {text!r}: unset it for the default, {default}"
    )


def debug_table() -> str:
    """The levels of DEBUG as a table in Markdown."""
    rows = [f"| `DEBUG={level}` | {shown} |" for level, shown in DEBUG_LEVELS.items()]
    return "\n".join(["| level | adds |", "| --- | --- |", *rows])


def variables_table() -> str:
    """All variables as a table in Markdown."""
    rows = [f"| `{v.name}` | {v.meaning} | {v.values} | {v.default} |" for v in VARIABLES.values()]
    return "\n".join(["| variable | meaning | values | default |", "| --- | --- | --- | --- |", *rows])
