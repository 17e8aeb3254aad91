"""Exports `digits.py` for programs without Python: its training step, its evaluation, and its data.

    python examples/export_digits.py FOLDER [--epochs 20]

`training.pgrd` takes a step of Adam on a batch, `evaluation.pgrd` gives the loss and the accuracy of any
number of images with parameters of the same names. The data are raw files, little-endian, of shuffled digits:
`train_images.u8` (n, 64), `train_labels.i32` (n,), the same of `test_`, and `order.i32`, the batches in the
order in which `digits.py` trains on them. `DEVICE=WASM` chooses the device that the files are made for.
"""

import argparse
import random
from pathlib import Path

from digits import BATCH, LEARNING_RATE, SEED, Classifier, load, tensors

from polygrad import Tensor, TinyJit, Variable, compile_step, nn

MOST_IMAGES = 2048


def export_training(model: Classifier, images: Tensor, labels: Tensor, path: Path) -> None:
    """A training step on batches like this one; nothing is trained yet."""

    def loss(model: Classifier, images: Tensor, labels: Tensor) -> Tensor:
        return model(images).sparse_categorical_crossentropy(labels)

    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=LEARNING_RATE)
    compile_step(loss, model, optimizer, images, labels).save(path)


def export_evaluation(model: Classifier, path: Path) -> None:
    """Loss and accuracy of n images, 1 <= n <= MOST_IMAGES."""

    @TinyJit
    def evaluate(images: Tensor, labels: Tensor) -> dict[str, Tensor]:
        scores = model(images)
        return {
            "loss": scores.sparse_categorical_crossentropy(labels),
            "accuracy": (scores.argmax(axis=1) == labels).mean(),
        }

    n = Variable("n", 1, MOST_IMAGES)
    images = Tensor.zeros(MOST_IMAGES, 64, dtype="uint8").contiguous().realize()
    labels = Tensor.zeros(MOST_IMAGES, dtype="int32").contiguous().realize()
    for size in (2, 3):  # the second call captures
        evaluate(images[: n.bind(size)], labels[: n.bind(size)])
    evaluate.save(path, model)


def batch_order(batches: int, epochs: int) -> list[int]:
    """The number of the batch of each step, as `digits.py` shuffles them."""
    order, numbers, out = random.Random(SEED), list(range(batches)), []
    for _ in range(epochs):
        order.shuffle(numbers)
        out += numbers
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description="Export the digit classifier's training step and its data.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=20)
    arguments = parser.parse_args()
    folder: Path = arguments.folder

    Tensor.manual_seed(SEED)
    training, held_out = load()
    model = Classifier()
    folder.mkdir(parents=True, exist_ok=True)
    with Tensor.train():
        export_training(model, *tensors(training[:BATCH]), folder / "training.pgrd")
    export_evaluation(model, folder / "evaluation.pgrd")
    for name, rows in [("train", training), ("test", held_out)]:
        images, labels = tensors(rows)
        (folder / f"{name}_images.u8").write_bytes(images.data())
        (folder / f"{name}_labels.i32").write_bytes(labels.data())
    order = Tensor(batch_order(len(training) // BATCH, arguments.epochs), dtype="int32")
    (folder / "order.i32").write_bytes(order.data())


if __name__ == "__main__":
    main()
