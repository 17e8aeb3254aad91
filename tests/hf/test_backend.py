"""The libraries of the host. A page that polygrad's loader did not start has none."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from polygrad.errors import ModelError
from polygrad.hf.backend import open_templates


@pytest.mark.parametrize("has_devices", [False, True])
def test_a_page_without_the_loader_has_no_libraries(
    monkeypatch: pytest.MonkeyPatch, has_devices: bool
) -> None:
    """Also when a device was opened before, for which `page_host` registers a module without them."""
    for name in ("pyodide", "pyodide.ffi"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for name in ("JsException", "can_run_sync", "run_sync"):
        setattr(sys.modules["pyodide.ffi"], name, RuntimeError)
    monkeypatch.delitem(sys.modules, "polygrad.hf.javascript", raising=False)
    if has_devices:
        host = ModuleType("polygrad_host")
        host.openHost = object  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "polygrad_host", host)
    monkeypatch.setattr(sys, "platform", "emscripten")
    with pytest.raises(ModelError, match="something else started: start it with polygrad's npm package"):
        open_templates()
