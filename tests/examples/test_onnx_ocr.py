"""`examples/onnx_ocr.py` reads Chinese and English text in a picture that is drawn here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import model_packages
import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "onnx_ocr.py"
ENVIRONMENT = {**os.environ, "PYTHONIOENCODING": "utf-8"}
LINES = ["Hello, polygrad 2026!", "机器学习编译器", "This line is upside down"]


def draw(path: Path) -> None:
    image, drawing, fonts = (pytest.importorskip(f"PIL.{n}") for n in ("Image", "ImageDraw", "ImageFont"))
    font = fonts.truetype(str(model_packages.place(model_packages.FONT)), 36)
    picture = image.new("RGB", (640, 260), "white")
    for i, text in enumerate(LINES):
        line = image.new("RGB", (580, 60), "white")
        drawing.Draw(line).text((10, 4), text, fill=(20, 40, 60 * i), font=font)
        picture.paste(line.rotate(180) if i == 2 else line, (30, 20 + 75 * i))
    picture.save(path)


@pytest.mark.timeout(600)
def test_text_in_a_picture_is_read(tmp_path):
    models = model_packages.place(model_packages.RAPIDOCR)
    draw(tmp_path / "text.ppm")
    command = [sys.executable, str(EXAMPLE), str(tmp_path / "text.ppm"), "--models", str(models)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=ENVIRONMENT, check=True)
    rows = [row.split("\t") for row in done.stdout.splitlines()]
    assert [row[-1] for row in rows] == LINES
    tops = [int(row[1]) for row in rows]
    assert tops == sorted(tops) and all(0 <= int(row[0]) < int(row[2]) <= 640 for row in rows)


def test_a_file_that_is_no_ppm(tmp_path):
    (tmp_path / "x.ppm").write_bytes(b"P5 1 1 255 x")
    models = model_packages.place(model_packages.RAPIDOCR)
    command = [sys.executable, str(EXAMPLE), str(tmp_path / "x.ppm"), "--models", str(models)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 1 and "expected a PPM file" in done.stderr
