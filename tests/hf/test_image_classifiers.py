"""Pictures are prepared and classified as `transformers` does, with PIL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoder_cases import CASES
from model_checkpoints import randomize, save
from PIL import Image
from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

from polygrad import Tensor, hf
from polygrad.errors import ArgumentError, ModelError, ShapeError
from polygrad.hf.image_preparation import FILE, read_preparation

LEVEL = 1 / 255  # of a byte, by which a picture differs whose axes PIL resizes in the other order
SQUARE = {"height": 24, "width": 24}


def picture(height: int, width: int, channels: int = 3) -> np.ndarray:
    """Waves and noise."""
    y, x = np.mgrid[:height, :width] / max(height, width)
    waves = np.stack([np.sin((5 + c) * x + 4 * y * c) for c in range(channels)], -1)
    noise = np.random.default_rng(height).normal(0, 15, waves.shape)
    return (120 + 80 * waves + noise).clip(0, 255).astype(np.uint8)


def prepared(settings: dict[str, Any], image: np.ndarray) -> np.ndarray:
    return read_preparation({FILE: json.dumps(settings).encode()})(Tensor(image)).numpy()


@pytest.mark.parametrize(
    ("processor", "settings"),
    [
        (ViTImageProcessorPil, {"size": SQUARE}),
        (ViTImageProcessorPil, {"size": {"height": 40, "width": 21}, "resample": 3}),
        (ViTImageProcessorPil, {"size": {"shortest_edge": 16}, "do_normalize": False}),
        (
            ViTImageProcessorPil,
            {"size": SQUARE, "do_resize": False, "do_center_crop": True, "crop_size": SQUARE},
        ),
        (ConvNextImageProcessorPil, {"size": {"shortest_edge": 28}}),
        (ConvNextImageProcessorPil, {"size": {"shortest_edge": 28}, "crop_pct": 1.0, "resample": 2}),
        (ConvNextImageProcessorPil, {"size": {"shortest_edge": 384}}),
    ],
)
@pytest.mark.parametrize("shape", [(50, 33), (30, 61)])
def test_a_picture_is_prepared_as_by_transformers_within_a_level(
    processor: Any, settings: dict[str, Any], shape: tuple[int, int]
) -> None:
    theirs, image = processor(**settings), picture(*shape)
    want = theirs(image, return_tensors="np")["pixel_values"][0]
    found = prepared(json.loads(theirs.to_json_string()), image)
    assert found.shape == want.shape
    spread = min(theirs.image_std) if theirs.do_normalize else 1.0
    assert abs(found - want).max() < 1.01 * LEVEL / spread


@pytest.mark.parametrize("resample", [2, 3])
def test_squares_are_resized_as_by_pil_to_the_last_bit(resample: int) -> None:
    image = picture(50, 50)
    want = np.asarray(Image.fromarray(image).resize((24, 24), resample))
    found = prepared({"size": SQUARE, "resample": resample, "do_rescale": False}, image)
    assert (found == want.transpose(2, 0, 1)).all()


def test_old_files_say_a_number_for_a_size() -> None:
    settings = {"size": 24, "do_resize": True, "do_normalize": True, "resample": 2,
                "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}  # fmt: skip
    found = prepared(settings, picture(50, 33))
    want = ViTImageProcessorPil(size=SQUARE)(picture(50, 33), return_tensors="np")["pixel_values"][0]
    assert abs(found - want).max() < 2.02 * LEVEL


def test_a_gray_picture_has_its_values_in_each_channel() -> None:
    gray = picture(24, 24, 1)[..., 0]
    settings = {"size": SQUARE, "image_mean": [0.0, 0.0, 0.0], "image_std": [1.0, 0.5, 0.25]}
    found = prepared(settings, gray)
    for channel, std in enumerate((1.0, 0.5, 0.25)):
        np.testing.assert_allclose(found[channel], gray / 255 / std, rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"do_resize": True}, "size"),
        ({"size": {"height": 0, "width": 4}}, "height"),
        ({"size": {"height": 4, "width": 1 << 20}}, "width"),
        ({"size": SQUARE, "resample": 1}, "resample"),
        ({"do_pad": True}, "do_pad"),
        ({"image_mean": [0.5], "image_std": [0.0]}, "image_std"),
        ({"image_mean": [0.5, 0.5], "image_std": [0.5]}, "image_std"),
        ({"do_center_crop": True}, "crop_size"),
        (
            {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 8}, "crop_pct": 0},
            "crop_pct",
        ),
    ],
)
def test_a_file_that_says_something_else(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(ModelError, match=rf"^preprocessor_config.json.*{expected}: "):
        read_preparation({FILE: json.dumps(settings).encode()})


@pytest.fixture(scope="module", params=["vit-labels", "resnet-labels", "convnext-labels"])
def classifiers(request: Any, tmp_path_factory: Any) -> tuple[Any, Any, Any]:
    folder: Path = tmp_path_factory.mktemp("pictures")
    reference = randomize(CASES[request.param].model())
    save(reference, folder)
    processor = ViTImageProcessorPil(size=SQUARE)
    processor.save_pretrained(folder)
    return hf.load_hf(folder), reference, processor


def test_labels_are_those_of_transformers_within_1e_5(classifiers: tuple[Any, Any, Any]) -> None:
    model, reference, processor = classifiers
    images = [processor(picture(24 + i, 30), return_tensors="np")["pixel_values"][0] for i in range(5)]
    with torch.no_grad():
        want = reference(torch.tensor(np.stack(images))).logits.softmax(-1).numpy()
    found = model.classify(images)
    assert [list(row) for row in found] == [model.labels] * 5 == [["LABEL_0", "LABEL_1", "LABEL_2"]] * 5
    np.testing.assert_allclose([list(row.values()) for row in found], want, rtol=1e-4, atol=1e-5)


def test_pictures_of_bytes_are_prepared(classifiers: tuple[Any, Any, Any]) -> None:
    model, _, processor = classifiers
    image = picture(24, 24)
    ready = processor(image, return_tensors="np")["pixel_values"][0]
    want = list(model.classify([ready])[0].values())
    np.testing.assert_allclose(list(model.classify([image])[0].values()), want, rtol=1e-4)
    more = model.classify([picture(50, 33), image, Tensor(image)])
    np.testing.assert_allclose(list(more[2].values()), want, rtol=1e-4)


def test_the_saved_folder_prepares_alike(classifiers: tuple[Any, Any, Any], tmp_path: Path) -> None:
    model, _, _ = classifiers
    model.save(tmp_path)
    image = picture(40, 28)
    assert hf.load_hf(tmp_path).classify([image]) == model.classify([image])


def test_what_is_no_picture() -> None:
    config = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    sizes = {"image_size": 8, "patch_size": 4}
    model = hf.from_config({"architectures": ["ViTForImageClassification"], **config, **sizes})
    with pytest.raises(ArgumentError, match="images: expected at least one"):
        model.classify([])
    with pytest.raises(ArgumentError, match="images: expected a list of pictures, got bytes"):
        model.classify(b"GIF89a")
    with pytest.raises(ModelError, match=r"preprocessor_config.json: missing"):
        model.classify([picture(8, 8)])
    with pytest.raises(ShapeError, match=r"images\[0\]: expected floats of shape"):
        model.classify([np.zeros((8, 8), np.float32)])
    with pytest.raises(ShapeError, match=r"images\[1\]: expected shape \(3, 8, 8\)"):
        model.classify([np.zeros((3, 8, 8), np.float32), np.zeros((3, 4, 8), np.float32)])
