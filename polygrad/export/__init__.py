"""Exported models, which run without the Python that they were made of.

`load` runs a step that `CompiledStep.save` and `TinyJit.save` wrote:

from polygrad import export
model = export.load("model.pgrd")
logits = model.run(x=images)["logits"]

`load_language_model`, `load_text_encoder` and `load_text_classifier` run what `export` of a model of
`polygrad.hf` wrote:

model = export.load_language_model("chat.pgrd")
print(model.generate([{"role": "user", "content": "Why is the sky blue?"}]).text)

`combine` makes one file of several, which has the code for several devices:

export.combine(["model.webgpu.pgrd", "model.wasm.pgrd"], "model.pgrd")

`sign` signs a file, with a key that `generate_key` or minisign made, and loaders take a `public_key`:

public_key = export.generate_key("signing.key")
export.sign("model.pgrd", "signing.key")
model = export.load("model.pgrd", public_key=public_key)
"""

from polygrad.capture.c_options import COptions
from polygrad.export.combining import combine
from polygrad.export.language_model import LanguageModel, load_language_model
from polygrad.export.model import Model, load
from polygrad.export.programs import TensorSpec
from polygrad.export.signing import generate_key, sign
from polygrad.export.text_readers import (
    TextClassifier,
    TextEncoder,
    load_text_classifier,
    load_text_encoder,
)

__all__ = [
    "COptions",
    "LanguageModel",
    "Model",
    "TensorSpec",
    "TextClassifier",
    "TextEncoder",
    "combine",
    "generate_key",
    "load",
    "load_language_model",
    "load_text_classifier",
    "load_text_encoder",
    "sign",
]
