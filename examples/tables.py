"""Three models for tables learn digits, and one says why: `python examples/tables.py`.

Fits a perceptron, TabM and a neural additive model to the pixels of handwritten digits
(examples/data/digits.safetensors), as a table of 64 columns. Then the additive model learns the price of made
houses, and the curves that it found, one for each column, go to tables.svg. The same file runs under CPython,
in Node (`npx polygrad-node`) and in a page.
"""

import argparse
import random
from pathlib import Path

from polygrad import nn
from polygrad.models.tables import MLPClassifier, NAMClassifier, NAMRegressor, TabMClassifier
from polygrad.pictures.curves import chart

DATA = Path(__file__).parent / "data" / "digits.safetensors"


def houses(count):
    """Rows of (size, age, noise), each from 0 to 1, and a price that is a sum of curves of size and age."""
    draw = random.Random(0).uniform
    rows = [[draw(0, 1) for _ in range(3)] for _ in range(count)]
    return rows, [3 * size**2 - 2 * abs(age - 0.4) + draw(-0.1, 0.1) for size, age, _ in rows]


def main():
    parser = argparse.ArgumentParser(description="Fit models for tables.")
    parser.add_argument("--epochs", type=int, default=60)
    epochs = parser.parse_args().epochs

    digits = nn.state.safe_load(DATA)
    images, labels = digits["images"].reshape(-1, 64).cast("float32"), digits["labels"].cast("int32")
    (x, y), (x_test, y_test) = nn.data.split((images, labels), 0.75, seed=0)
    models = {
        "perceptron": MLPClassifier(max_iter=epochs, random_state=0),
        "TabM": TabMClassifier(hidden=(64, 64), members=8, max_iter=epochs, random_state=0),
        "additive": NAMClassifier(hidden=(32,), max_iter=epochs, random_state=0),
    }
    for name in nn.data.progress(list(models), "fitting"):
        models[name].fit(x, y)
    for name, model in models.items():
        print(f"{name}: {100 * model.score(x_test, y_test):.1f} % of held-out digits")

    rows, prices = houses(600)
    nam = NAMRegressor(max_iter=2 * epochs, random_state=0).fit(rows[:450], prices[:450])
    print(f"prices: R² {nam.score(rows[450:], prices[450:]):.2f}")
    places = [i / 100 for i in range(101)]
    curves = {}
    for i, column in enumerate(("size", "age", "noise")):
        found = nam.contributions([[p if j == i else 0.5 for j in range(3)] for p in places])
        curves[column] = [float(row[i][0]) for row in found]
    picture = chart(curves, title="What each column adds to a price", x_label="value", x_range=(0, 1))
    Path("tables.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
