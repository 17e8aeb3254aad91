"""The cache of files in Node, and in Chromium in each of its stores, from a server of another origin."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from javascript_hosts import ROOT, built

from polygrad import Device, Tensor, TinyJit

pytestmark = [pytest.mark.e2e, built]
SIZE = 1_300_000  # floats in a matrix of 4 columns: 20.8 MB in 5 blocks


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """The file of an exported function of 4 numbers, and what it gives for ones."""
    path = tmp_path_factory.mktemp("cache") / "model.pgrd"
    before = Device.DEFAULT
    Device.DEFAULT = "WASM"
    try:
        values = np.random.default_rng(0).integers(-8, 8, (SIZE, 4)).astype(np.float32)
        weight = Tensor(values).realize()
        jit = TinyJit(lambda x: {"y": (weight * x).sum(axis=0)})
        for _ in range(2):
            out = jit(Tensor.ones(4).realize())
        jit.save(path, {"weight": weight})
        return path, out["y"].tolist()
    finally:
        Device.DEFAULT = before


@pytest.mark.parametrize("host", ["node", "origin", "caches"])
def test_files_are_stored_resumed_checked_and_removed(
    host: str, package: Path, saved: tuple[Path, list[float]]
) -> None:
    path, expected = saved
    command = ["node", str(Path(__file__).parent / "file_cache.mjs"), host, str(package), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    steps, length, url = found["first"], found["length"], f"{found['url']}/model.pgrd"
    tag = '"1"' if host == "node" else None  # pages ask other origins without conditions

    assert steps["broken"]["error"] == "FetchError"
    (partial,) = steps["partial"]
    assert (partial["url"], partial["whole"]) == (url, False)
    assert 4_000_000 < partial["bytes"] < length
    resumed = {"y": expected, "cached": partial["bytes"], "total": length}
    assert steps["resumed"] == {**resumed, "asked": [["GET", f"bytes={partial['bytes']}-", tag]]}
    whole = {"y": expected, "cached": length, "total": length}
    fresh = {**whole, "cached": 0, "asked": [["GET", None, None]]}
    assert steps["cached"] == {**whole, "asked": [["GET", None, tag]]}
    assert steps["uncached"] == steps["digest"] == fresh
    assert steps["known"] == {**whole, "asked": []}
    assert (steps["missing"]["error"], steps["missing"]["status"]) == ("FetchError", 404)
    assert "got status 404" in steps["missing"]["message"]
    assert steps["wrong"]["error"] == "FetchError" and "SHA-256 000" in steps["wrong"]["message"]
    assert steps["deleted"][1] == []
    assert steps["together"] == [expected] * 3
    (file,) = steps["list"]
    assert (file["url"], file["bytes"], file["whole"]) == (url, length, True)

    assert found["second"] == {"cached": whole, "list": []}
    stored = {"node": 2, "origin": [2, 0], "caches": [0, 2]}[host]  # one is that of a file that is missing
    assert (found["stored"], found["left"]) == (stored, 0 if host == "node" else [0, 0])


SESSION = """
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import { cache, create } from "polygrad";

const [, , cacheDir] = process.argv;
const pg = await create({ cacheDir });
const bytes = await pg.state.safeSave({ a: new pg.Tensor([1, 2]) });
const server = createServer((request, response) => {
  const isKnown = request.headers["if-none-match"] === '"1"';
  response.writeHead(isKnown ? 304 : 200, { ETag: '"1"' }).end(isKnown ? undefined : bytes);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${server.address().port}/a.safetensors`;
const seen = [];
for (const options of [{}, {}, { cache: false }]) {
  let cached;
  const onProgress = (progress) => ({ cached } = progress);
  const { a } = await pg.state.safeLoad(url, { ...options, onProgress });
  seen.push([await a.tolist(), cached === bytes.length]);
}
const isListed = async (files) => (await files.list()).some((file) => file.url === url);
const listed = [await isListed(pg.cache), await isListed(cache), readdirSync(`${cacheDir}/files`).length];
const wrong = await pg.state.safeLoad(bytes, { sha256: "0".repeat(64) }).catch(({ name }) => name);
console.log(JSON.stringify({ seen, listed, deleted: await pg.cache.delete(url), wrong }));
process.exit(0);
"""


def test_a_session_keeps_files_in_its_own_folder(package: Path, tmp_path: Path) -> None:
    (package / "session.mjs").write_text(SESSION)
    command = ["node", "session.mjs", str(tmp_path)]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "seen": [[[1, 2], False], [[1, 2], True], [[1, 2], False]],
        "listed": [True, False, 1],
        "deleted": True,
        "wrong": "FetchError",
    }
