"""Trains a two-layer classifier on 8x8 handwritten digits, the same file on every host.

    python examples/digits.py [--epochs 20] [--json]

Runs unchanged under CPython and, inside Pyodide, in Node and in a browser; `DEVICE=WASM` chooses the device.
Progress goes to standard error. With `--json` the last line of standard output is one JSON object: host,
device, steps per second (the first step left out), compile time in seconds (what the first step took beyond a
later one), final loss over the training images, accuracy over the held-out fifth.

Deterministic: a fixed seed, a fixed shuffle, and random numbers that are the same bits on every device.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path
from statistics import median

from polygrad import Device, Tensor, nn

DATA = Path(__file__).parent / "data" / "digits.safetensors"
BATCH, HIDDEN, LEARNING_RATE, SEED = 64, 128, 0.005, 0


class Progress:
    """One line that redraws itself on a terminal; elsewhere a plain line every tenth of the way."""

    def __init__(self, total: int, label: str) -> None:
        self.total, self.label, self.start = total, label, time.perf_counter()
        self.live = sys.stderr.isatty()
        self.shown = -1.0  # the fraction (plain) or the time (live) of the last line

    def update(self, done: int, loss: float) -> None:
        elapsed = time.perf_counter() - self.start
        mark, gap = (elapsed, 0.1) if self.live else (done / self.total, 0.1)
        if done < self.total and mark - self.shown < gap:
            return
        self.shown = mark
        rate = done / elapsed if elapsed else 0.0
        bar = "█" * (20 * done // self.total)
        text = (
            f"{self.label} |{bar:<20}| {done}/{self.total} [{elapsed:.1f}s, {rate:.0f} it/s, loss {loss:.4f}]"
        )
        end = "" if self.live and done < self.total else "\n"
        print(f"\r{text}" if self.live else text, end=end, file=sys.stderr, flush=True)


class Classifier:
    """64 pixels -> 128 ReLU -> 10 scores."""

    def __init__(self) -> None:
        self.l1, self.l2 = nn.Linear(64, HIDDEN), nn.Linear(HIDDEN, 10)

    def __call__(self, images: Tensor) -> Tensor:
        """Scores `(n, 10)` of uint8 images `(n, 64)`."""
        return self.l2(self.l1(images.cast("float32") / 16).relu())


Rows = list[tuple[list[int], int]]


def load() -> tuple[Rows, Rows]:
    """The images, shuffled the same way every time: four fifths to train on, one fifth held out."""
    data = nn.state.safe_load(DATA)
    images, labels = data["images"].reshape(-1, 64).tolist(), data["labels"].tolist()
    rows = list(zip(images, labels, strict=True))
    random.Random(SEED).shuffle(rows)
    held_out = len(rows) // 5
    return rows[held_out:], rows[:held_out]


def tensors(rows: Rows) -> tuple[Tensor, Tensor]:
    images, labels = zip(*rows, strict=True)
    return Tensor(list(images), dtype="uint8").realize(), Tensor(list(labels), dtype="int32").realize()


def train(model: Classifier, rows: Rows, epochs: int) -> list[float]:
    """Trains in place; returns the seconds each step took, its loss read back included."""
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=LEARNING_RATE)
    batches = [tensors(rows[i : i + BATCH]) for i in range(0, len(rows) - BATCH + 1, BATCH)]
    order = random.Random(SEED)
    seconds: list[float] = []
    progress = Progress(epochs * len(batches), f"{host()} {Device.DEFAULT}")
    for _ in range(epochs):
        order.shuffle(batches)
        for images, labels in batches:
            start = time.perf_counter()
            optimizer.zero_grad()
            loss = model(images).sparse_categorical_crossentropy(labels).backward()
            Tensor.realize(loss, *optimizer.schedule_step())
            value = loss.item()
            seconds.append(time.perf_counter() - start)
            progress.update(len(seconds), value)
    return seconds


def evaluate(model: Classifier, rows: Rows) -> tuple[float, float]:
    """Mean cross-entropy and accuracy over `rows`."""
    images, labels = tensors(rows)
    scores = model(images)
    loss = scores.sparse_categorical_crossentropy(labels)
    accuracy = (scores.argmax(axis=1) == labels).mean()
    Tensor.realize(loss, accuracy)
    return loss.item(), accuracy.item()


def host() -> str:
    if sys.platform != "emscripten":
        return "cpython"
    import js

    return "pyodide-node" if hasattr(js, "process") else "chromium"


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a digit classifier with polygrad.")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    arguments = parser.parse_args()

    Tensor.manual_seed(SEED)
    training, held_out = load()
    model = Classifier()
    with Tensor.train():
        seconds = train(model, training, arguments.epochs)
    later = seconds[1:] or seconds
    result = {
        "host": host(),
        "device": Device.DEFAULT,
        "steps_per_second": len(later) / sum(later),
        "compile_seconds": seconds[0] - median(later),
        "final_loss": evaluate(model, training)[0],
        "test_accuracy": evaluate(model, held_out)[1],
    }
    if arguments.json:
        print(json.dumps(result), flush=True)
    else:
        print(f"held-out accuracy {result['test_accuracy']:.1%}, training loss {result['final_loss']:.4f}")


if __name__ == "__main__":
    main()
