"""Regression that says how sure it is: `python examples/uncertainty.py`.

Eight networks learn a noisy curve of which a part is missing. Each says a mean and a variance (Nix and
Weigend, 1994); together they are an ensemble (Lakshminarayanan et al., 2017): the mean of their variances is
the noise, the variance of their means is what they do not know, most of it where there was nothing to learn
from. All eight train at once: their weights have an axis of members. Writes the loss to uncertainty.svg and
the curve to uncertainty_band.svg. The same file runs under CPython, in Node
(`npx polygrad-node`) and in a page.
"""

import argparse
import math
from pathlib import Path

from polygrad import Tensor, compile_step, nn
from polygrad.pictures import chart

MEMBERS, HIDDEN, ROWS = 8, 64, 512


class Layer:
    """A linear layer of each member: (MEMBERS, n, inputs) to (MEMBERS, n, outputs)."""

    def __init__(self, inputs, outputs):
        bound = 1 / math.sqrt(inputs)
        self.weight = Tensor.uniform(MEMBERS, inputs, outputs, low=-bound, high=bound)
        self.bias = Tensor.uniform(MEMBERS, 1, outputs, low=-bound, high=bound)

    def __call__(self, x):
        return x @ self.weight + self.bias


class Ensemble:
    """x (n, 1) to each member's means and variances, (MEMBERS, n, 1) both."""

    def __init__(self):
        self.layers = [Layer(1, HIDDEN), Tensor.tanh, Layer(HIDDEN, HIDDEN), Tensor.tanh, Layer(HIDDEN, 2)]

    def __call__(self, x):
        out = x.expand(MEMBERS, *x.shape).sequential(self.layers)
        return out[..., :1], out[..., 1:].softplus() + 1e-4

    def predict(self, x):
        """The mean (n, 1), the noise and the ignorance, both as standard deviations."""
        means, variances = self(x)
        return means.mean(0), variances.mean(0).sqrt(), means.std(0, correction=0)


def curve(x):
    """What is to be learned, and how noisy it is."""
    return (x * 3).sin() + x * 0.5, (x + 2) * 0.08


def main():
    parser = argparse.ArgumentParser(description="Train an ensemble that says how sure it is.")
    parser.add_argument("--epochs", type=int, default=150)
    epochs = parser.parse_args().epochs

    Tensor.manual_seed(0)
    x = Tensor.uniform(ROWS, 1, low=-2.0, high=1.2)
    x = (x > 0.2).where(x + 0.8, x)  # nothing between 0.2 and 1
    clean, noise = curve(x)
    y = clean + noise * Tensor.randn(ROWS, 1)
    train, test = nn.data.split((x, y), 0.8, seed=0)

    model = Ensemble()
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.005)

    def loss_of(model, x, y):
        means, variances = model(x)
        return means.gaussian_nll_loss(y.expand(means.shape), variances)

    batches = nn.data.batches(train, 128, drop_last=True, seed=0, epochs=epochs)
    history = nn.data.History()
    step = None
    for x, y in nn.data.progress(batches, "training", history=history):
        step = step or compile_step(loss_of, model, optimizer, x, y)
        history.add(loss=step.run(x, y))
    history.save("uncertainty.svg", title="Negative log-likelihood")

    places = Tensor.linspace(-2.0, 2.0, 101).unsqueeze(1)
    mean, noise, ignorance = (t.flatten() for t in model.predict(places))
    width = (noise**2 + ignorance**2).sqrt() * 2
    band = {"mean": mean, "lower": mean - width, "upper": mean + width, "true": curve(places)[0].flatten()}
    lines = {name: values.tolist() for name, values in band.items()}
    picture = chart(lines, title="The mean, and two deviations", x_label="x", x_range=(-2, 2))
    Path("uncertainty_band.svg").write_text(picture)

    def ignorance_at(low, high):
        return model.predict(Tensor.linspace(low, high, 20).unsqueeze(1))[2].mean().item()

    x, y = test
    mean, noise, ignorance = model.predict(x)
    inside = ((y - mean).abs() < 2 * (noise**2 + ignorance**2).sqrt()).mean().item()
    print(f"held-out rows within two deviations: {inside:.1%}")
    print(f"ignorance {ignorance_at(-1.5, 0.0):.3f} among the data, {ignorance_at(0.4, 0.8):.3f} in the gap")


if __name__ == "__main__":
    main()
