"""Tables of cases against torch: value, gradient and, of smooth ones, the gradient of the gradient, within
the tolerance of each row.

A failure names its row. The quick tests take a part of each table, the slow ones all of it.
"""

from __future__ import annotations

import pytest
from adapter import SLOW_WEBGPU
from tensor.tables import elementwise, movement, networks, reductions, running, specials

TABLES = {t.TABLE.family: t.TABLE for t in (elementwise, reductions, movement, networks, specials)}
PART = 4
pytestmark = pytest.mark.usefixtures("default_device")


def check(family: str, part: int, offset: int = 0) -> None:
    rows = [row for row in TABLES[family].rows if row.is_in(part, offset)]
    assert rows
    found = running.failures(rows)
    assert not found, f"{len(found)} of {len(rows)} rows differ:\n" + "\n".join(found[:20])


def test_there_are_1500_rows_and_each_is_another() -> None:
    rows = [row for table in TABLES.values() for row in table.rows]
    assert len({(row.name, row.theirs, row.gradient) for row in rows}) == len(rows) >= 1500
    assert sum(row.second for row in rows) >= 50


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("family", TABLES)
def test_a_part_of_the_table_agrees(family: str, device: str) -> None:
    check(family, PART, 0 if device == "CPU" else 1)


@pytest.mark.parametrize("family", TABLES)
def test_a_small_part_agrees_on_the_interpreter(family: str, device: str = "INTERP") -> None:
    check(family, 8 * PART)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("family", TABLES)
def test_the_table_agrees(family: str, device: str) -> None:
    check(family, 1)


@pytest.mark.parametrize("device", [SLOW_WEBGPU])
@pytest.mark.parametrize("family", TABLES)
def test_a_part_agrees_on_webgpu(family: str, device: str) -> None:
    check(family, 2 * PART)
