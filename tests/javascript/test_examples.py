"""The examples in the comments of the JavaScript API give what they say within 1e-4, or 1e-3 after `≈`."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]

GENERATED = ROOT / "wasm_runtime" / "src" / "api" / "generated"
COMMENT = re.compile(r"^ *(/\*\*(?:(?!\*/).)*\*/)\n *([^\n]*)", re.DOTALL | re.MULTILINE)
CLASS = re.compile(r"^export (?:class|interface) (\w+)(?:<.*?>)?(?: extends (\w+))?", re.MULTILINE)
BLOCK = re.compile(r"```js\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """A comment, the class that it is in, and the name that it documents."""

    owner: str
    base: str
    name: str
    comment: str
    declaration: str

    @property
    def example(self) -> str | None:
        block = BLOCK.search(re.sub(r"^ *\* ?", "", self.comment, flags=re.MULTILINE))
        return block[1] if block else None


def entries(name: str) -> list[Entry]:
    source = (GENERATED / name).read_text(encoding="utf-8")
    classes = [(m.start(), m[1], m[2] or "") for m in CLASS.finditer(source)]
    found = []
    for match in COMMENT.finditer(source):
        declared = CLASS.match(match[2])
        _, owner, base = max(c for c in classes if c[0] <= match.start(2))
        name = "" if declared else re.sub(r"^(?:(?:static|override|get|readonly) )*(\w+).*", r"\1", match[2])
        found.append(Entry(owner, base, name, match[1], match[2]))
    return found


FILES = {name: entries(name) for name in ("tensor.ts", "nn.ts")}
ALL = [entry for found in FILES.values() for entry in found]
OF_CLASSES = {e.owner: e.example for e in ALL if e.name == "" and e.declaration.startswith("export class")}
WITH_EXAMPLE = {(e.owner, e.name) for e in ALL if e.example}


def test_there_is_an_example_of_nearly_everything() -> None:
    assert len(WITH_EXAMPLE) > 480


# --- which comments need none

# Statements of what something is, which are no functions.
STATES = re.compile(
    r"@internal|^export (interface|type|const|function) |: null without `|null without `"
    r"|In a worker known after|A promise: how many|unless given\. \*/"
)
WITHOUT = {
    **dict.fromkeys(
        ("Tensor.cat", "Tensor.stack", "Tensor.meshgrid"), "of arrays: the method of this name has one"
    ),
    **dict.fromkeys(
        (
            *("OptimizerGroup.lr", "OptimizerGroup.zeroGrad", "OptimizerGroup.scheduleStep"),
            *("OptimizerGroup.stateDict", "OptimizerGroup.loadStateDict"),
        ),
        "of several optimizers: that of Optimizer has one",
    ),
}


def needs_example(entry: Entry) -> bool:
    return not (
        STATES.search(entry.comment)
        or STATES.search(entry.declaration)
        or entry.declaration.startswith("readonly ")  # of a class, whose comment is the same
        or re.search(rf"\.{entry.name}\b", (entry.name and OF_CLASSES.get(entry.owner)) or "")
        or (entry.base, entry.name) in WITH_EXAMPLE  # a method of this name of the base
    )


def test_every_comment_has_an_example_or_a_reason_for_none() -> None:
    missing = [f"{e.owner}.{e.name}" for e in ALL if e.example is None and needs_example(e)]
    assert sorted(set(missing) - set(WITHOUT)) == []
    assert set(WITHOUT) <= set(missing), "listed in WITHOUT, and not needed"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["direct", "worker"])
def test_examples_give_what_they_say(mode: str, package: Path) -> None:
    examples = list(dict.fromkeys(entry.example for entry in ALL if entry.example))
    command = ["node", str(Path(__file__).parent / "run_examples.mjs"), str(package), mode]
    done = subprocess.run(command, input=json.dumps(examples), capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == []


@pytest.mark.parametrize("name", FILES)
def test_every_block_of_code_is_an_example(name: str) -> None:
    source = (GENERATED / name).read_text(encoding="utf-8")
    assert source.count("* ```js") == sum(e.example is not None for e in FILES[name]) > 10
