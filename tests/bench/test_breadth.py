"""The breadth suite's table: every row can be run by every library, or a reason says why not."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType

import bench_package  # noqa: F401
import pytest

from bench.suites import breadth, breadth_rows, gpu_rows

BENCH = Path(__file__).resolve().parents[2] / "bench"
TABLES = {"processor": breadth_rows, "gpu": gpu_rows}


@pytest.fixture(params=list(TABLES))
def table(request: pytest.FixtureRequest) -> ModuleType:
    return TABLES[request.param]


def python_operations(path: Path) -> set[str]:
    """The keys of every dict in a library's file, which is not imported: it needs the peers."""
    dicts = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Dict)]
    return {key.value for node in dicts for key in node.keys if isinstance(key, ast.Constant)}


def javascript_operations(path: Path) -> set[str]:
    """The keys of its table, which is called OPERATIONS and indented as prettier does."""
    table = re.search(r"^const OPERATIONS = \{\n(.*?)^\};", path.read_text(), re.MULTILINE | re.DOTALL)
    assert table is not None
    return set(re.findall(r"^  (\w+)[:,]", table[1], re.MULTILINE))


POLYGRAD = python_operations(BENCH / "libraries" / "ops_tensor.py")
OPERATIONS = {
    "numpy": python_operations(BENCH / "libraries" / "ops_numpy.py"),
    "torch": python_operations(BENCH / "libraries" / "ops_torch.py"),
    "onnxruntime-web": python_operations(BENCH / "onnx_ops.py"),
    "tfjs": javascript_operations(BENCH / "page" / "ops_tfjs.mjs"),
    "jax-js": javascript_operations(BENCH / "page" / "ops_jax.mjs"),
}
# The libraries of each table by the name of their operations; every row of the GPU's is in a page.
CONTESTANTS = [
    (name, library, library.removesuffix("-wasm").removesuffix("-webgpu"))
    for name, module in TABLES.items()
    for library in module.LACKS
]


def test_names_are_unique_and_there_are_sixty_rows(table) -> None:
    names = [(row.family, row.name) for row in table.ROWS]
    assert len(names) == len(set(names)) >= 60


def test_every_family_has_rows_for_two_threads_that_are_run_with_one_too() -> None:
    rows = breadth_rows.ROWS
    assert {row.family for row in rows if 2 in row.threads} == {row.family for row in rows}
    assert all(1 in row.threads for row in rows)


def test_polygrad_and_torch_whose_results_are_the_reference_have_every_operation(table) -> None:
    assert {row.op for row in table.ROWS} <= POLYGRAD & OPERATIONS["torch"]


@pytest.mark.parametrize(("name", "library", "operations"), CONTESTANTS)
def test_a_peer_has_an_operation_or_a_reason(name: str, library: str, operations: str) -> None:
    for row in TABLES[name].ROWS:
        if name == "processor" and library in breadth_rows.PAGE and not row.page:
            continue
        reason = breadth_rows.reason_against(library, row, TABLES[name].LACKS)
        assert row.op in OPERATIONS[operations] or reason is not None, f"{library}, {row.op}"


@pytest.mark.parametrize("operations", [name for name in OPERATIONS if name != "torch"])
def test_what_a_peer_has_is_asked_of_it_somewhere(operations: str) -> None:
    """Or an operation stands in its table that no device of it is ever measured with."""
    asked = {
        row.op
        for name, library, own in CONTESTANTS
        if own == operations
        for row in TABLES[name].ROWS
        if row.op not in TABLES[name].LACKS[library]
    }
    known = {row.op for module in TABLES.values() for row in module.ROWS}
    assert OPERATIONS[operations] & known <= asked


def test_a_reason_may_be_a_dtype_or_that_gradients_are_asked_for() -> None:
    row, operand, against = breadth_rows.Row, breadth_rows.Operand, breadth_rows.reason_against
    narrow = row("", "", "matmul", (operand((2, 2), "bfloat16"),) * 2)
    assert against("numpy", narrow) == "has no bfloat16"
    trained = row("", "", "softmax", (operand((2, 2)),), {"axis": 1}, gradients=(0,))
    assert against("numpy", trained) == "has no gradients"
    assert against("torch", trained) is None
    assert against("tfjs-webgpu", trained, gpu_rows.LACKS) is None


def test_the_gpus_rows_are_measured_on_it_beside_the_peers_that_have_them() -> None:
    cases = {c.name: c for c in breadth.gpu_cases()}
    assert {(c.device, c.host, c.threads) for c in cases.values()} == {("WEBGPU", "chromium", 1)}
    assert cases["product: NN 256"].peers == gpu_rows.PEERS
    assert cases["training step: convnet, 64 images of 28×28"].peers == ("tfjs-webgpu", "jax-js")
    assert "WEBGPU" not in {c.device for c in breadth.cases()}


def test_means_are_made_of_each_device_apart_and_rows_of_one_leave_the_others() -> None:
    def measured(device: str, value: float) -> breadth.Result:
        return breadth.Result(
            suite="breadth",
            case="softmax: 4096×64",
            host="chromium",
            device=device,
            value=value,
            unit="ms",
            better="lower",
            target="",
            met=True,
            peers={"jax-js": 8.0},
        )

    kept = [measured("WASM", 1.0), measured("WEBGPU", 4.0)]
    found = breadth.renewed([*kept, *breadth.means(kept)], [measured("WEBGPU", 2.0)])
    assert [(r.case, r.device, round(r.value or 0, 9)) for r in found] == [
        ("softmax: 4096×64", "WASM", 1.0),
        ("softmax: 4096×64", "WEBGPU", 2.0),
        ("geometric mean: all rows (1)", "WASM", 8.0),
        ("geometric mean: softmax (1)", "WASM", 8.0),
        ("geometric mean: all rows (1)", "WEBGPU", 4.0),
        ("geometric mean: softmax (1)", "WEBGPU", 4.0),
    ]


def test_reasons_are_of_rows_that_are_there(table) -> None:
    dtypes = {x.dtype for row in table.ROWS for x in row.operands}
    known = {row.op for row in table.ROWS} | dtypes | {row.attributes.get("to") for row in table.ROWS}
    for library, reasons in table.LACKS.items():
        assert set(reasons) <= known | {"gradients", "convolutions of batches"}, library


def test_bounds_of_integers_are_a_power_of_two_apart(table) -> None:
    """Or libraries that round differently would be given different numbers."""
    spans = {x.high - x.low for row in table.ROWS for x in row.operands if "int" in x.dtype}
    assert spans and all(span == 2 ** (int(span).bit_length() - 1) for span in spans)


def test_gradients_are_asked_of_floats(table) -> None:
    for row in table.ROWS:
        assert all(row.operands[i].dtype.startswith("float") for i in row.gradients), row.name
