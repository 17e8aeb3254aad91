"""ONNX models: `load` reads a file as an `Instance`, which runs it and whose initializers can be trained;
`inspect` describes a file; `save` writes one.

    from polygrad import onnx
    model = onnx.load("model.onnx")
    y = model.forward(x=image)["y"]
"""

from __future__ import annotations

from polygrad.onnx.inspection import Inspection, inspect
from polygrad.onnx.instance import Instance, load
from polygrad.onnx.ports import Port
from polygrad.onnx.saving import save

__all__ = ["Inspection", "Instance", "Port", "inspect", "load", "save"]
