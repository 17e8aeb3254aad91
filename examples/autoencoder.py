"""An autoencoder learns to draw digits from eight numbers: `python examples/autoencoder.py`.

The encoder says eight numbers of an image, the decoder draws the image from them, and both learn to make
drawing and image equal. Writes its loss to autoencoder.svg, and prints digits beside what is drawn of them.
The same file runs under CPython, in Node (`npx polygrad-node`) and in a page.
"""

import argparse
from pathlib import Path

from polygrad import Tensor, compile_step, nn

DATA = Path(__file__).parent / "data" / "digits.safetensors"
CODE = 8  # numbers for an image of 64 pixels


class Autoencoder:
    """Images (n, 64) of 0 to 1 to images like them, through codes (n, CODE)."""

    def __init__(self):
        self.encoder = [nn.Linear(64, 128), Tensor.relu, nn.Linear(128, CODE), Tensor.tanh]
        self.decoder = [nn.Linear(CODE, 128), Tensor.relu, nn.Linear(128, 64), Tensor.sigmoid]

    def encode(self, images):
        return images.sequential(self.encoder)

    def decode(self, codes):
        return codes.sequential(self.decoder)

    def __call__(self, images):
        return self.decode(self.encode(images))


def drawn(image):
    """An image as lines of text."""
    return ["".join(" .:-=+*#%@"[min(int(p * 10), 9)] * 2 for p in row) for row in image]


def main():
    parser = argparse.ArgumentParser(description="Train an autoencoder on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=40)
    epochs = parser.parse_args().epochs

    Tensor.manual_seed(0)
    images = nn.state.safe_load(DATA)["images"].reshape(-1, 64).cast("float32") / 16
    (train,), (test,) = nn.data.split(images, 0.9, seed=0)

    model = Autoencoder()
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.003)
    batches = nn.data.batches(train, 64, drop_last=True, seed=0, epochs=epochs)
    history = nn.data.History()
    step = None
    for (x,) in nn.data.progress(batches, "training", history=history):
        step = step or compile_step(lambda model, x: model(x).mse_loss(x), model, optimizer, x)
        history.add(loss=step.run(x))
    history.save("autoencoder.svg", title="Drawing digits from eight numbers", log=True)

    shown = test[:2]
    for image, copy in zip(shown.reshape(-1, 8, 8).tolist(), model(shown).reshape(-1, 8, 8).tolist()):
        print("\n".join(f"{a}   {b}" for a, b in zip(drawn(image), drawn(copy))), end="\n\n")
    error = model(test).mse_loss(test).item()
    print(f"held-out error {error:.4f}, that of a mean image {test.var(0).mean().item():.4f}")


if __name__ == "__main__":
    main()
