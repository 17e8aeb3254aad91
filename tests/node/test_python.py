"""The whole of polygrad inside Pyodide: the same bits as elsewhere, deep graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
from javascript_hosts import HOSTS, built, hosts, run, under_cpython

pytestmark = [pytest.mark.e2e, built]
SCRIPTS = Path(__file__).parent / "scripts"


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_computes_the_same_bits_as_wasmtime(host: str) -> None:
    expected = under_cpython(SCRIPTS / "same_bits.py")
    got = run(host, SCRIPTS / "same_bits.py").json()
    assert got["device"] == "WASM"
    assert got.keys() == expected.keys()
    assert [name for name in expected if got[name] != expected[name]] == []


@pytest.mark.parametrize("host", hosts("node"))
def test_a_graph_20000_deep_lives_and_dies(host: str) -> None:
    result = run(host, SCRIPTS / "deep.py").json()
    assert result["gradient"] == pytest.approx([0.9999**10_000] * 2, rel=1e-3)
    assert result["value"] == pytest.approx([6.6880, 7.0558], rel=1e-3)
    assert result["afterwards"] == [2, 3]
