"""The breadth suite's table: every row can be run by every library, or a reason says why not."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture(scope="module")
def table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_breadth_rows", BENCH / "suites" / "breadth_rows.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_breadth_rows"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def python_operations(path: Path) -> set[str]:
    """The keys of every dict in a library's file, which is not imported: it needs the peers."""
    dicts = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Dict)]
    return {key.value for node in dicts for key in node.keys if isinstance(key, ast.Constant)}


def javascript_operations(path: Path) -> set[str]:
    """The keys of its table, which is called OPERATIONS and indented as prettier does."""
    table = re.search(r"^const OPERATIONS = \{\n(.*?)^\};", path.read_text(), re.MULTILINE | re.DOTALL)
    assert table is not None
    return set(re.findall(r"^  (\w+)[:,]", table[1], re.MULTILINE))


OPERATIONS = {
    "polygrad": python_operations(BENCH / "libraries" / "ops_tensor.py"),
    "numpy": python_operations(BENCH / "libraries" / "ops_numpy.py"),
    "torch": python_operations(BENCH / "libraries" / "ops_torch.py"),
    "onnxruntime-web": python_operations(BENCH / "onnx_ops.py"),
    "tfjs-wasm": javascript_operations(BENCH / "page" / "ops_tfjs.mjs"),
    "jax-js": javascript_operations(BENCH / "page" / "ops_jax.mjs"),
}


def test_names_are_unique_and_there_are_sixty_rows(table) -> None:
    names = [(row.family, row.name) for row in table.ROWS]
    assert len(names) == len(set(names)) >= 60


def test_every_family_has_rows_for_two_threads_that_are_run_with_one_too(table) -> None:
    assert {row.family for row in table.ROWS if 2 in row.threads} == {row.family for row in table.ROWS}
    assert all(1 in row.threads for row in table.ROWS)


def test_polygrad_has_every_operation(table) -> None:
    assert {row.op for row in table.ROWS} <= OPERATIONS["polygrad"]


@pytest.mark.parametrize("library", [name for name in OPERATIONS if name != "polygrad"])
def test_a_peer_has_an_operation_or_a_reason_and_not_both(table, library: str) -> None:
    for row in table.ROWS:
        if library in table.PAGE and not row.page:
            continue
        lacks = table.LACKS[library].get(row.op) is not None
        assert lacks != (row.op in OPERATIONS[library]), f"{library}, {row.op}"
        assert lacks <= (table.reason_against(library, row) is not None)


def test_a_reason_may_be_a_dtype_or_that_gradients_are_asked_for(table) -> None:
    narrow = table.Row("", "", "matmul", (table.Operand((2, 2), "bfloat16"),) * 2)
    assert table.reason_against("numpy", narrow) == "has no bfloat16"
    trained = table.Row("", "", "softmax", (table.Operand((2, 2)),), {"axis": 1}, gradients=(0,))
    assert table.reason_against("numpy", trained) == "has no gradients"
    assert table.reason_against("torch", trained) is None


def test_reasons_are_of_rows_that_are_there(table) -> None:
    dtypes = {x.dtype for row in table.ROWS for x in row.operands}
    known = {row.op for row in table.ROWS} | dtypes | {row.attributes.get("to") for row in table.ROWS}
    for library, reasons in table.LACKS.items():
        assert set(reasons) <= known | {"gradients"}, library


def test_bounds_of_integers_are_a_power_of_two_apart(table) -> None:
    """Or libraries that round differently would be given different numbers."""
    spans = {x.high - x.low for row in table.ROWS for x in row.operands if "int" in x.dtype}
    assert spans and all(span == 2 ** (int(span).bit_length() - 1) for span in spans)


def test_gradients_are_asked_of_floats(table) -> None:
    for row in table.ROWS:
        assert all(row.operands[i].dtype.startswith("float") for i in row.gradients), row.name
