"""Exported steps: `CompiledStep.save` and `TinyJit.save` write them, `load` runs them without their Python.

from polygrad import export
model = export.load("model.pgrd")
logits = model.run(x=images)["logits"]
"""

from polygrad.export.model import Model, TensorSpec, load

__all__ = ["Model", "TensorSpec", "load"]
