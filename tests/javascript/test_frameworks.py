"""The packed package in applications of others' frameworks, built and served as their guides say.

`scripts/ecosystem.sh` installs the frameworks. The bundlers alone are in `test_packaging.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ECOSYSTEM, ROOT, built
from javascript_snippets import snippets

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    built,
    pytest.mark.skipif(not (ECOSYSTEM / "node_modules").exists(), reason="needs scripts/ecosystem.sh"),
]
SEEN = [[3, 6], [3, 6], [2, 4, 6]]
(COMPONENT,) = (snippet.source for snippet in snippets("framework"))  # the sum of `numbers`


def run(*command: object, cwd: Path) -> None:
    environment = {**os.environ, "NEXT_TELEMETRY_DISABLED": "1"}
    command = tuple(map(str, command))
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture
def app(request: pytest.FixtureRequest, package: Path, model: Path) -> Iterator[Path]:
    """The application that a test names, with the package in node_modules and the assets in `public`."""
    folder = ECOSYSTEM / "apps" / f"{request.param}-{os.getpid()}"
    shutil.copytree(HERE / "apps" / request.param, folder)
    try:
        shutil.copy(HERE / "apps" / "use_polygrad.mjs", folder)
        shutil.copytree(package / "node_modules", folder / "node_modules")
        assets = "node_modules/polygrad/bin/polygrad-assets.mjs"
        run("node", assets, "public/polygrad", cwd=folder)
        shutil.copy(model, folder / "public" / "polygrad")
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def serving(folder: Path, *command: object) -> Iterator[str]:
    """The address of the server that `command` starts; PORT in it is a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [str(word).replace("PORT", str(port)) for word in command]
    server = subprocess.Popen(words, cwd=folder, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert server.poll() is None, f"{words} ended"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def visit(url: str) -> Any:
    done = subprocess.run(
        ["node", str(HERE / "visit.mjs"), url], cwd=ROOT, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert seen["complaints"] == []
    return json.loads(seen["text"])


VITE = ["node", ECOSYSTEM / "node_modules/vite/bin/vite.js"]
NEXT = ["node", ECOSYSTEM / "node_modules/next/dist/bin/next"]


@pytest.mark.parametrize("app", ["react"], indirect=True)
def test_react_with_vite_built_and_in_development(app: Path) -> None:
    run(*VITE, "build", cwd=app)
    with serving(app, *VITE, "preview", "--port", "PORT", "--strictPort", "--host", "127.0.0.1") as url:
        assert visit(url) == SEEN
    with serving(app, *VITE, "--port", "PORT", "--strictPort", "--host", "127.0.0.1") as url:
        assert visit(url) == SEEN


@pytest.mark.parametrize("app", ["next"], indirect=True)
def test_a_client_component_of_next(app: Path) -> None:
    run(*NEXT, "build", cwd=app)
    with serving(app, *NEXT, "start", "-p", "PORT", "-H", "127.0.0.1") as url:
        assert visit(url) == SEEN


@pytest.mark.parametrize("app", ["guide"], indirect=True)
def test_the_component_of_the_guide_with_vite(app: Path) -> None:
    (app / "sum.jsx").write_text(COMPONENT)
    run(*VITE, "build", cwd=app)
    with serving(app, *VITE, "preview", "--port", "PORT", "--strictPort", "--host", "127.0.0.1") as url:
        assert visit(url) == 6


@pytest.mark.parametrize("app", ["next"], indirect=True)
def test_the_component_of_the_guide_with_next(app: Path) -> None:
    (app / "app" / "computed.jsx").write_text(f'"use client";\n{COMPONENT}')
    run(*NEXT, "build", cwd=app)
    with serving(app, *NEXT, "start", "-p", "PORT", "-H", "127.0.0.1") as url:
        assert visit(url) == 6
