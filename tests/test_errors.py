"""The kinship of polygrad's errors: what programs for Python, torch and tinygrad catch."""

from __future__ import annotations

import pytest

from polygrad import errors
from polygrad.errors import PolygradError

ERRORS = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, PolygradError)]
BUILTIN = {
    "ShapeError": ValueError, "AxisError": IndexError, "DTypeError": TypeError, "ArgumentError": ValueError,
    "OverflowError_": OverflowError, "OutOfMemoryError": MemoryError, "ProgramError": ValueError,
    "InternalError": AssertionError, "LinAlgError": ValueError, "AnomalyError": FloatingPointError,
}  # fmt: skip


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_is_a_runtime_error_and_of_its_builtin_kind(error: type[PolygradError]) -> None:
    for kind in (PolygradError, RuntimeError, BUILTIN.get(error.__name__, RuntimeError)):
        with pytest.raises(kind, match="internal: what" if error is errors.InternalError else "^what$"):
            raise error("what")


def test_the_builtin_kinds_are_of_errors_that_exist() -> None:
    assert set(BUILTIN) <= {e.__name__ for e in ERRORS}
