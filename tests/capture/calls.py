"""What tests of captured functions call, and what they pass."""

from __future__ import annotations

from polygrad import Tensor


def counted(function):
    def call(*args, **kwargs):
        call.count += 1
        return function(*args, **kwargs)

    call.count = 0
    return call


def t(*values, **kwargs):
    return Tensor([float(v) for v in values], **kwargs).realize()
