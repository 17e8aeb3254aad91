"""Every recorded tinygrad program gives the same values, kernels, structure and op sequence."""

import pytest

from tests.parity.compare import compare, load_cases


@pytest.mark.parametrize("name", load_cases())
def test_case_values_within_1e_5_and_same_kernels(name: str) -> None:
    result = compare(load_cases()[name])
    assert result.passed, f"{name}: {'; '.join(result.why)}"
