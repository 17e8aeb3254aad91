"""Learned positions."""

from __future__ import annotations

from polygrad import nn


class PositionTable(nn.Embedding):
    """A row for each position. It is not packed with a model's weights: it is small, and models also read its
    rows in order."""

    packable = ()
