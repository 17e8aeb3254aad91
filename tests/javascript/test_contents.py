"""What is in the packed package: fields of package.json, licences, source maps, sizes."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]
GUIDE = ROOT / "docs" / "guides" / "javascript_setup.md"
HOSTING = ROOT / "docs" / "guides" / "javascript_hosting.md"


@pytest.fixture(scope="module")
def own(package: Path) -> Path:
    return package / "node_modules" / "polygrad"


@pytest.fixture(scope="module")
def fields(own: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((own / "package.json").read_text())
    return found


def leaves(value: Any) -> Iterator[str]:
    """All paths in a field of package.json."""
    if isinstance(value, str):
        yield value
    else:
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves(part)


def test_every_path_of_package_json_leads_to_a_file(own: Path, fields: dict[str, Any]) -> None:
    names = ("main", "types", "browser", "jsdelivr", "unpkg", "exports", "bin", "sideEffects")
    paths = [path for name in names for path in leaves(fields[name])]
    assert len(paths) > 20
    missing = [path for path in paths if not list(own.glob(path.removeprefix("./")))]
    assert missing == []
    assert fields["jsdelivr"] == fields["unpkg"] == "./dist/browser/polygrad.js"
    assert fields["license"] == "MIT" and len(fields["keywords"]) >= 5


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ("browser,import", "browser/polygrad.mjs"),
        ("worker,import", "browser/polygrad.mjs"),
        ("workerd,worker,browser,import", "browser/polygrad.mjs"),
        ("deno,node,import", "main.js"),
        ("bun,node,import", "main.js"),
        ("node,import", "main.js"),
        ("node,require", "cjs/main.js"),
        ("import", "browser/polygrad.mjs"),
    ],
)
def test_each_host_gets_its_own_module_and_types(
    conditions: str, expected: str, fields: dict[str, Any]
) -> None:
    def resolve(target: Any, names: set[str]) -> str:
        """As Node resolves: the first key that is a condition of the host, in the order of the file."""
        while isinstance(target, dict):
            target = next(value for key, value in target.items() if key in names)
        return str(target)

    names = {*conditions.split(","), "default"}
    entry = fields["exports"]["."]
    assert resolve(entry, names) == f"./dist/{expected}"
    types = resolve(entry, {"types", *names})
    host = "web" if "browser/" in expected and conditions != "import" else "node"
    assert f"/types/{host}/src/" in types and types.endswith("either.d.ts") is (conditions == "import")


def test_licences_of_all_that_is_bundled_are_there(own: Path, fields: dict[str, Any]) -> None:
    assert (own / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert (own / "README.md").stat().st_size > 500
    notices = (own / "THIRD_PARTY_NOTICES.txt").read_text()
    assert notices == (own / "dist" / "browser" / "THIRD_PARTY_NOTICES.txt").read_text()
    for name in fields["dependencies"]:
        version = json.loads((ROOT / "node_modules" / name / "package.json").read_text())["version"]
        assert re.search(rf"^{name} {re.escape(version)}, |^P{name[1:]} {version}, ", notices, re.MULTILINE)
    for text in ("Mozilla Public License", "PYTHON SOFTWARE FOUNDATION LICENSE", "Apache License"):
        assert text in notices


def test_source_maps_that_scripts_refer_to_are_there_and_whole(own: Path) -> None:
    scripts = [p for p in (own / "dist").rglob("*.*js") if p.name != "package.json"]
    assert len(scripts) > 10
    for script in scripts:
        references = re.findall(r"^//# sourceMappingURL=(.*)$", script.read_text(), re.MULTILINE)
        assert references == [f"{script.name}.map"], script
        sources = json.loads((script.parent / references[0]).read_text())
        assert len(sources["sourcesContent"]) == len(sources["sources"])
        assert sources["sources"] or script.stat().st_size < 1000, (
            script
        )  # chunks that only export others' names


def test_scripts_are_minified(own: Path) -> None:
    for script in (own / "dist").rglob("*.*js"):
        text = re.sub(r"/\*.*?\*/|`[^`]*`", "", script.read_text(), flags=re.DOTALL)
        lines = text.split("\n")
        assert len(text) < 2000 or len(text) / len(lines) > 200, script


def test_an_import_that_is_not_used_leaves_nothing_in_a_bundle(package: Path) -> None:
    (package / "unused.mjs").write_text('import { create } from "polygrad";\nconsole.log("none");\n')
    command = [ROOT / "node_modules/.bin/esbuild", "--bundle", "--format=esm", "unused.mjs"]
    done = subprocess.run(list(map(str, command)), cwd=package, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) < 200


# What a page fetches, by the guide's table.
FILES = {
    "polygrad.mjs": "dist/browser/polygrad.mjs",
    "polygrad.js": "dist/browser/polygrad.js",
    "polygrad-worker.mjs": "dist/browser/polygrad-worker.mjs",
    "polygrad-thread.mjs": "dist/browser/polygrad-thread.mjs",
    "polygrad-runtime.mjs": "dist/browser/polygrad-runtime.mjs",
    "polygrad-shared.mjs": "dist/browser/polygrad-shared.mjs",
    "polygrad-cache.mjs": "dist/browser/polygrad-cache.mjs",
    "polygrad-tokenizers.mjs": "dist/browser/polygrad-tokenizers.mjs",
    "polygrad-csv.mjs": "dist/browser/polygrad-csv.mjs",
    "polygrad-hub.mjs": "dist/browser/polygrad-hub.mjs",
    "polygrad-service-worker.js": "dist/browser/polygrad-service-worker.js",
    "python/polygrad-*.zip": "dist/browser/python/polygrad-*.zip",
    "python/stdlib-*.zip": "dist/browser/python/stdlib-*.zip",
    "python/applications-*.zip": "dist/browser/python/applications-*.zip",
    "pyodide.asm.wasm": "../pyodide/pyodide.asm.wasm",
    "pyodide.asm.mjs": "../pyodide/pyodide.asm.mjs",
    "pyodide.mjs": "../pyodide/pyodide.mjs",
}


def sizes_of_the_guide() -> dict[str, tuple[int, int]]:
    """In KB of 1,000 bytes, by name: as it is, and with gzip."""
    rows = re.findall(r"^\| `([^`]+)` \| ([\d,]+) \| ([\d,]+) \|", GUIDE.read_text(), re.MULTILINE)
    return {name: (int(size.replace(",", "")), int(packed.replace(",", ""))) for name, size, packed in rows}


def test_the_guides_add_up_what_a_first_visit_loads_within_5_percent() -> None:
    stated = sizes_of_the_guide()
    always = ["polygrad.mjs", "python/polygrad-*.zip", "python/stdlib-*.zip"]
    always += ["pyodide.asm.wasm", "pyodide.asm.mjs", "pyodide.mjs"]
    size, packed = (sum(stated[name][i] for name in always) for i in (0, 1))
    sentences = {
        GUIDE: (r"first visit loads ([\d.]+) MB with gzip", [packed]),
        HOSTING: (r"first visit loads ([\d.]+) MB instead of ([\d.]+)", [packed, size]),
    }
    for page, (pattern, expected) in sentences.items():
        told = re.search(pattern, " ".join(page.read_text(encoding="utf-8").split()))
        assert told is not None, page
        assert [float(x) * 1000 for x in told.groups()] == pytest.approx(expected, rel=0.05)


def test_the_guide_states_the_sizes_of_files_within_5_percent(own: Path) -> None:
    """In KB of 1,000 bytes: as they are, and with gzip."""
    stated = sizes_of_the_guide()
    measured = {}
    for name, pattern in FILES.items():
        (path,) = own.parent.glob(f"polygrad/{pattern}") if ".." not in pattern else [own / pattern]
        contents = path.read_bytes()
        measured[name] = (len(contents) / 1000, len(gzip.compress(contents, 9)) / 1000)
    assert list(stated) == list(FILES)
    table = "\n".join(f"| `{name}` | {a:,.0f} | {b:,.0f} |" for name, (a, b) in measured.items())
    for name, sizes in measured.items():
        for told, size in zip(stated[name], sizes, strict=True):
            assert abs(told - size) <= max(0.05 * size, 0.5), (
                f"{name}: the guide's table should have\n{table}"
            )


TYPED = """
import { create, load, loadPolygrad, type CreateOptions } from "polygrad";
import { create as inPage } from "polygrad/web";
import { create as inNode } from "polygrad/node";
import { load as loadModel, loadLanguageModel } from "polygrad/runtime";
import * as tokenizers from "polygrad/runtime/tokenizers";

const options: CreateOptions = { baseURL: "/polygrad", cacheDir: false, worker: true };
void create(options).then(({ Tensor }) => new Tensor([1, 2]).sum().item());
void load({ indexURL: "/pyodide" });
void loadPolygrad({ cacheDir: "cache" });
void inPage({ baseURL: "/polygrad" });
void inNode({ cacheDir: "cache" });
void loadModel("model.pgrd", { threads: 2 });
const turns = [{ role: "user", content: "Hi" }];
void loadLanguageModel("chat.pgrd", { tokenizers }).then((model) => model.chat(turns));
// @ts-expect-error: no option
void loadLanguageModel("chat.pgrd").then((model) => model.generate("Hi", { topk: 3 }));
// @ts-expect-error: an option of Node
void inPage({ cacheDir: "cache" });
// @ts-expect-error: an option of pages
void inNode({ baseURL: "/polygrad" });
// @ts-expect-error: an option of neither
void create({ basURL: "/polygrad" });
"""


def test_where_the_host_is_not_known_types_are_those_of_both(package: Path) -> None:
    """TypeScript's resolution `bundler` has neither the condition `node` nor `browser`."""
    (package / "either.ts").write_text(TYPED)
    modules = ROOT / "node_modules"
    command = ["node", modules / "typescript/bin/tsc", "--strict", "--noEmit", "--ignoreConfig", "--target"]
    command += ["es2022", "--module", "esnext", "--moduleResolution", "bundler", "either.ts"]
    command += ["--types", "node,emscripten", "--typeRoots", modules / "@types"]
    done = subprocess.run(list(map(str, command)), cwd=package, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
