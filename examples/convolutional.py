"""A convolutional network learns handwritten digits: `python examples/convolutional.py`.

1,797 images of 8x8 pixels (examples/data/README.md says whose). Writes its loss and accuracy, as a picture,
to convolutional.svg. The same file runs under CPython, in Node (`npx polygrad-node`) and in a page.
"""

import argparse
from pathlib import Path

from polygrad import Tensor, compile_step, nn

DATA = Path(__file__).parent / "data" / "digits.safetensors"


class Classifier:
    """Images (n, 8, 8) of 0 to 16 to scores (n, 10)."""

    def __init__(self):
        self.conv1, self.norm1 = nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm(32)
        self.out = nn.Linear(32 * 2 * 2, 10)

    def __call__(self, images):
        x = images.unsqueeze(1).cast("float32") / 16
        x = self.norm1(self.conv1(x)).relu().max_pool2d()
        x = self.norm2(self.conv2(x)).relu().max_pool2d()
        return self.out(x.flatten(1).dropout(0.2))


def main():
    parser = argparse.ArgumentParser(description="Train a convolutional network on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=10)
    epochs = parser.parse_args().epochs

    Tensor.manual_seed(0)
    digits = nn.state.safe_load(DATA)
    train, test = nn.data.split((digits["images"], digits["labels"].cast("int32")), 0.8, seed=0)

    model = Classifier()
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=0.005)

    def loss_of(model, images, labels):
        scores = model(images)
        return scores.cross_entropy(labels, label_smoothing=0.1), (scores.argmax(1) == labels).mean()

    batches = nn.data.batches(train, 64, drop_last=True, seed=0, epochs=epochs)
    history = nn.data.History()
    step = None
    for images, labels in nn.data.progress(batches, "training", history=history):
        step = step or compile_step(loss_of, model, optimizer, images, labels)
        loss, accuracy = step.run(images, labels)
        history.add(loss=loss, accuracy=accuracy)
    history.save("convolutional.svg", title="Digits")

    images, labels = test
    accuracy = (model(images).argmax(1) == labels).mean().item()
    print(f"held-out accuracy {accuracy:.1%}, loss {history.mean('loss', of=20):.4f}")


if __name__ == "__main__":
    main()
