"""`create` starts as every Python here does: the first start leaves a snapshot, with the bridge in it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]


def start(package: Path, name: str, **options: Any) -> list[Any]:
    """Start `create` in a new process by the module `name`; the stages it told, and a result."""
    commonjs = name.endswith(".cjs")
    load = 'const { create } = require("polygrad");' if commonjs else 'import { create } from "polygrad";'
    (package / name).write_text(
        f"""{load}
        async function main() {{
          const stages = [];
          const onProgress = ({{ stage }}) => stages.push(stage);
          const {{ Tensor }} = await create({{ ...{json.dumps(options)}, onProgress }});
          console.log(JSON.stringify([stages, await new Tensor([1, 2]).mul(3).tolist()]));
        }}
        main();
        """
    )
    done = subprocess.run(["node", name], cwd=package, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[Any] = json.loads(done.stdout)
    return found


def test_the_second_create_is_from_a_snapshot_in_either_module_system_and_in_a_worker(
    package: Path, tmp_path: Path
) -> None:
    """The process ends by itself, once the snapshot is stored."""
    cache = str(tmp_path / "cache")
    first = [["files", "start", "import", "ready"], [3, 6]]
    assert start(package, "start.mjs", cacheDir=cache) == first
    assert start(package, "start.mjs", cacheDir=f"{cache}-of-workers", worker=True) == first
    assert len(list(Path(f"{cache}-of-workers").glob("snapshot-*"))) == 1
    for name in ("start.mjs", "start.cjs"):
        for worker in (False, True):
            seen = start(package, name, cacheDir=cache, worker=worker)
            assert seen == [["files", "start", "ready"], [3, 6]]


def test_the_package_holds_what_starts_need_once_for_each_host(package: Path) -> None:
    dist = package / "node_modules" / "polygrad" / "dist"
    made = {path.name for path in (ROOT / "node" / "dist" / "python").iterdir()}
    assert len(made) == 3
    assert {path.name for path in (dist / "python").iterdir()} == made
    compressed = {f"{name}.gz" for name in made}  # for CDNs
    assert {path.name for path in (dist / "browser" / "python").iterdir()} == made | compressed
    kinds = {path.suffix for path in dist.rglob("*") if path.is_file()}
    assert kinds == {".gz", ".js", ".map", ".mjs", ".json", ".ts", ".txt", ".zip"}
    assert not (dist / "browser" / "pyodide").exists()
