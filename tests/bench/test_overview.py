"""The picture of the README shows what is kept."""

from __future__ import annotations

import bench_package  # noqa: F401
import pytest

from bench import overview
from bench.report import number


def test_the_picture_is_that_of_the_kept_results() -> None:
    """`python -m bench.overview` draws it anew."""
    assert overview.PATH.read_text(encoding="utf-8") == overview.picture()


def test_every_measured_figure_is_in_it() -> None:
    picture = overview.picture()
    for panel in overview.PANELS:
        result = overview.result(panel)
        for figure in (result.value, *result.peers.values()):
            assert f">{number(figure, result.unit)}</text>" in picture


def test_a_case_that_is_not_kept_is_an_error() -> None:
    with pytest.raises(LookupError, match="of train: nothing in a page"):
        overview.result(overview.Panel("Nothing", "train", "nothing"))
