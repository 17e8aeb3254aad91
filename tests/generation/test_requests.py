"""Text is cut before stop strings, wherever the parts end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polygrad.errors import ArgumentError
from polygrad.generation.requests import Request, StopStrings


@given(st.text("ab", max_size=20), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3), st.data())
def test_parts_together_are_the_text_before_the_first_stop_string(
    text: str, stop: list[str], data: st.DataObject
) -> None:
    found = StopStrings(stop)
    out, at = "", 0
    while at < len(text) and not found.is_found:
        size = data.draw(st.integers(1, 5))
        out += found.feed(text[at : at + size])
        at += size
        if not found.is_found:
            ends = [text[:at].find(s) for s in stop]
            assert all(e < 0 for e in ends)
            assert text.startswith(out)
    if not found.is_found:
        out += found.finish()
        assert out == text
    else:
        assert text.startswith(out)
        assert all(s not in out for s in stop)
        assert any(text[len(out) :].startswith(s) for s in stop)


def test_requests_that_make_no_sense_are_refused() -> None:
    for options, message in (
        ({"tokens": ()}, "at least one token"),
        ({"tokens": (1,), "max_new_tokens": 0}, "max_new_tokens: expected at least 1"),
        ({"tokens": (1,), "stop": ("",)}, "stop: expected strings with characters"),
        ({"tokens": (1,), "log_probabilities": 21}, "expected 0 to 20"),
    ):
        with pytest.raises(ArgumentError, match=message):
            Request(**options)
