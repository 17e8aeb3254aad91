"""The packed package in other people's projects: CommonJS, TypeScript in three resolutions, bundlers."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]
HERE = Path(__file__).parent
NODE_MODULES = ROOT / "node_modules"


def run(*command: object, cwd: Path, timeout: float = 240) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_commonjs_and_es_modules_get_the_same(package: Path) -> None:
    body = """
        const pg = await create();
        const x = await new pg.Tensor([1, 2]).add(1).tolist();
        let found;
        try { new pg.Tensor([1, 2]).add(new pg.Tensor([1, 2, 3])); } catch (error) { found = error; }
        console.log(JSON.stringify([x, found instanceof ShapeError, typeof loadPolygrad]));
        process.exit(0);
    """
    names = "create, loadPolygrad, ShapeError"
    (package / "a.cjs").write_text(f'const {{ {names} }} = require("polygrad");(async () => {{{body}}})();')
    (package / "a.mjs").write_text(f'import {{ {names} }} from "polygrad";{body}')
    for name in ("a.cjs", "a.mjs"):
        assert json.loads(run("node", name, cwd=package)) == [[2, 3], True, "function"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("consumer.cts", ["--module", "nodenext"], marks=pytest.mark.slow),
        pytest.param("consumer.mts", ["--module", "nodenext"], marks=pytest.mark.slow),
        ("consumer.ts", ["--module", "esnext", "--moduleResolution", "bundler"]),
    ],
)
def test_a_typescript_program_compiles_under_strict(package: Path, name: str, options: list[str]) -> None:
    """Also the declarations themselves: without skipLibCheck. `@ts-expect-error` lines must be errors."""
    (package / name).write_text((HERE / "consumer.ts").read_text())
    types = ["--types", "node,emscripten", "--typeRoots", str(NODE_MODULES / "@types")]
    strict = ["--strict", "--exactOptionalPropertyTypes", "--noEmit", "--ignoreConfig", "--target", "es2022"]
    run("node", NODE_MODULES / "typescript/bin/tsc", *strict, *types, *options, name, cwd=package)


@pytest.mark.parametrize("bundler", ["esbuild", "vite", pytest.param("webpack", marks=pytest.mark.slow)])
def test_a_bundler_makes_a_page_of_it_that_runs(bundler: str, package: Path, model: Path) -> None:
    """On the page's thread, in a worker, and an exported model."""
    (package / "use_polygrad.mjs").write_text((HERE / "apps" / "use_polygrad.mjs").read_text())
    (package / "app.mjs").write_text(
        'import { main as use } from "./use_polygrad.mjs";\nexport const main = () => use("/assets");\n'
    )
    (package / "site" / "app.js").unlink(missing_ok=True)
    run("node", HERE / "bundle.mjs", bundler, package, cwd=ROOT)
    run("node", package / "node_modules/polygrad/bin/polygrad-assets.mjs", "site/assets", cwd=package)
    shutil.copy(model, package / "site" / "assets")
    assert json.loads(run("node", HERE / "bundle_host.mjs", package, cwd=ROOT)) == [[3, 6], [3, 6], [2, 4, 6]]
