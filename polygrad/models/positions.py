"""Learned positions."""

from __future__ import annotations

from polygrad import nn


class PositionTable(nn.Embedding):
    """A row for each position. Models read its rows in order, too, and it is small: it stays as it is where a
    model's weights are packed."""

    packable = ()
