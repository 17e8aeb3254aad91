"""Trains the classifier of examples/data/digits.onnx, which the playground shows and tests load.

    python scripts/digits_model.py [TARGET]

Needs the package onnx, whose ops say more of a convolution than `polygrad.onnx.save` writes of one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

from polygrad import Tensor, compile_step, nn

DATA = Path(__file__).resolve().parents[1] / "examples" / "data"
EPOCHS, BATCH = 30, 64


class Classifier:
    """Images (n, 1, 8, 8) of 0 to 16 to scores (n, 10)."""

    def __init__(self) -> None:
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.out = nn.Linear(64, 10)

    def __call__(self, image: Tensor) -> Tensor:
        x = self.conv1(image / 16).relu().max_pool2d()
        return self.out(self.conv2(x).relu().max_pool2d().flatten(1))


def trained() -> tuple[Classifier, float]:
    """A classifier, and its accuracy over digits that are held out."""
    Tensor.manual_seed(0)
    digits = nn.state.safe_load(DATA / "digits.safetensors")
    tensors = digits["images"].cast("float32").unsqueeze(1), digits["labels"].cast("int32")
    train, test = nn.data.split(tensors, 0.8, seed=0)
    model = Classifier()
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=0.005)
    step = None
    for images, labels in nn.data.batches(train, BATCH, drop_last=True, seed=0, epochs=EPOCHS):
        step = step or compile_step(
            lambda model, x, y: model(x).cross_entropy(y, label_smoothing=0.05),
            model,
            optimizer,
            images,
            labels,
        )
        step.run(images, labels)
    images, labels = test
    return model, (model(images).argmax(1) == labels).mean().item()


def model_proto(model: Classifier, accuracy: float) -> bytes:
    def weight(name: str, tensor: Tensor) -> TensorProto:
        return numpy_helper.from_array(np.asarray(tensor.numpy(), np.float32), name)

    initializers = [
        weight("largest", Tensor(16.0)),
        *(weight(name, x) for name, x in nn.state.get_state_dict(model).items()),
    ]
    pads, pool = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, {"kernel_shape": [2, 2], "strides": [2, 2]}
    node = helper.make_node
    nodes = [
        node("Div", ["image", "largest"], ["ink"], "scale"),
        node("Conv", ["ink", "conv1.weight", "conv1.bias"], ["edges"], "conv1", **pads),
        node("Relu", ["edges"], ["edges.on"], "relu1"),
        node("MaxPool", ["edges.on"], ["edges.small"], "pool1", **pool),
        node("Conv", ["edges.small", "conv2.weight", "conv2.bias"], ["strokes"], "conv2", **pads),
        node("Relu", ["strokes"], ["strokes.on"], "relu2"),
        node("MaxPool", ["strokes.on"], ["strokes.small"], "pool2", **pool),
        node("Flatten", ["strokes.small"], ["features"], "flatten"),
        node("Gemm", ["features", "out.weight", "out.bias"], ["scores"], "out", transB=1),
        node("Softmax", ["scores"], ["probabilities"], "softmax", axis=-1),
    ]
    inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])]
    outputs = [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])]
    graph = helper.make_graph(nodes, "digits", inputs, outputs, initializers)
    made = helper.make_model(
        graph, producer_name="polygrad", ir_version=9, opset_imports=[helper.make_opsetid("", 17)]
    )
    made.doc_string = (
        f"Reads handwritten digits; right for {accuracy:.1%} of those that it was not trained on."
    )
    checker.check_model(made, full_check=True)
    return made.SerializeToString()  # type: ignore[no-any-return]


def main(target: str = str(DATA / "digits.onnx")) -> None:
    model, accuracy = trained()
    Path(target).write_bytes(model_proto(model, accuracy))
    print(f"{target}: {Path(target).stat().st_size} bytes, {accuracy:.1%} of the digits held out are right")


if __name__ == "__main__":
    main(*sys.argv[1:])
