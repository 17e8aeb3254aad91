"""No more kernels than tinygrad 0.14 for a hundred programs, and the same values. Prints the counts."""

from __future__ import annotations

import pytest

from tests.parity.counts import HEADER, Row, rows, totals
from tests.parity.programs import PROGRAMS

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> dict[str, Row]:
    done = list(rows(PROGRAMS))
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("", HEADER, *done, totals(done), sep="\n")
    return {row.name: row for row in done}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_more_kernels_and_values_within_1e_4_of_the_greatest(table: dict[str, Row], name: str) -> None:
    assert not table[name].why
