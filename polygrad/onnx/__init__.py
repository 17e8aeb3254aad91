"""ONNX models: `load` reads a file and gives an `Instance`, which runs it and whose initializers can be
trained.

    from polygrad import onnx
    model = onnx.load("model.onnx")
    y = model.forward(x=image)["y"]
"""

from __future__ import annotations

from polygrad.onnx.instance import Instance, load
from polygrad.onnx.ports import Port

__all__ = ["Instance", "Port", "load"]
