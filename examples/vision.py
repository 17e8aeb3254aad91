"""A Vision Transformer learns handwritten digits, and is loaded from its folder: `python examples/vision.py`.

Trains a ViT of 70,000 weights on images of 8x8 pixels (examples/data/digits.safetensors), moved by up to
a pixel each time, and saves it to the folder digits_vit in HuggingFace's format, which transformers reads,
too. `load_hf` reads it, and `classify` takes pictures as files have them. It is compared with the nearest of
the ten mean images. The loss goes to vision.svg. The same file runs under CPython, in Node
(`npx polygrad-node`) and in a page.
"""

import argparse
import json
import random
from pathlib import Path

from polygrad import Tensor, hf, nn

DATA = Path(__file__).parent / "data" / "digits.safetensors"
CONFIG = {
    "architectures": ["ViTForImageClassification"],
    "model_type": "vit",
    "image_size": 8,
    "patch_size": 2,
    "num_channels": 1,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "layer_norm_eps": 1e-6,
    "id2label": {str(i): name for i, name in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    )},
}  # fmt: skip
# what is done to a picture: bytes become numbers of which the mean is about 0
PREPARATION = {
    "image_processor_type": "ViTImageProcessor",
    "do_resize": True,
    "size": {"height": 8, "width": 8},
    "resample": 2,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.3],
    "image_std": [0.4],
}
FOLDER = "digits_vit"
PLACES = (0, 0, -1, 1)  # by how many pixels pictures are moved


def moved(pixels, down, right):
    """Pictures (n, 1, 8, 8) moved by -1, 0 or 1 pixels; where nothing was is paper."""
    paper = -PREPARATION["image_mean"][0] / PREPARATION["image_std"][0]
    return pixels.pad((1, 1, 1, 1), value=paper)[:, :, 1 - down : 9 - down, 1 - right : 9 - right]


def nearest_mean(train, train_labels, test):
    """The numbers of the ten mean pictures that are nearest."""
    x, rows = train.flatten(1).float(), test.flatten(1).float()
    one_hot = train_labels.one_hot(10).float()
    means = one_hot.transpose(0, 1) @ x / one_hot.sum(0).unsqueeze(1)
    return (rows.unsqueeze(1) - means).square().sum(2).argmin(1)


def main():
    parser = argparse.ArgumentParser(description="Train a small Vision Transformer on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=70)
    epochs = parser.parse_args().epochs

    Tensor.manual_seed(0)
    digits = nn.state.safe_load(DATA)
    pictures = (digits["images"].cast("int32") * 255 // 16).cast("uint8").realize()  # as files have them
    (train, train_labels), (test, test_labels) = nn.data.split(
        (pictures, digits["labels"].cast("int32")), 0.8, seed=0
    )

    files = {"preprocessor_config.json": json.dumps(PREPARATION).encode()}
    model = hf.from_config(CONFIG, files)
    model.optimizer = nn.optim.AdamW(nn.state.get_parameters(model.module), lr=0.005)
    pixels = ((train.float() / 255 - 0.3) / 0.4).unsqueeze(1).realize()
    history = nn.data.History()
    batches = nn.data.batches((pixels, train_labels), 64, drop_last=True, seed=0, epochs=epochs)
    schedule = nn.optim.OneCycleLR(model.optimizer, 0.005, total_steps=len(batches))
    rng = random.Random(0)
    for x, y in nn.data.progress(batches, "training", history=history):
        shifted = moved(x, rng.choice(PLACES), rng.choice(PLACES))
        history.add(loss=model.train_step(pixel_values=shifted, labels=y))
        schedule.step()
    history.save("vision.svg", title="Cross-entropy of digits")
    model.save(FOLDER)

    reader = hf.load_hf(FOLDER)
    answers = reader.classify(test)
    right = [max(a, key=a.get) == reader.labels[y] for a, y in zip(answers, test_labels.tolist())]
    print(f"held-out accuracy {sum(right) / len(right):.1%}, loss {history.mean('loss', of=20):.3f}")
    print(
        f"the nearest mean image {(nearest_mean(train, train_labels, test) == test_labels).mean().item():.1%}"
    )


if __name__ == "__main__":
    main()
