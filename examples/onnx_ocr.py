"""Reads the text in a picture with ONNX models: `python examples/onnx_ocr.py picture.ppm --models FOLDER`.

The models are PP-OCRv4's (PaddleOCR), as the package rapidocr-onnxruntime ships them in its folder `models`:
one finds lines of text, one says which of them are upside down, one reads a line. What is around them, from
the picture to the text, is here: lines are level, as those of a scanned page. The picture is a PPM file (P6),
which image programs write. It needs no package but polygrad.
"""

import argparse
from pathlib import Path

from polygrad import Tensor, onnx

DETECTOR = "ch_PP-OCRv4_det_infer.onnx"
CLASSIFIER = "ch_ppocr_mobile_v2.0_cls_infer.onnx"
RECOGNIZER = "ch_PP-OCRv4_rec_infer.onnx"
SHORT_SIDE = 736  # pixels to which a smaller picture is enlarged before lines are looked for
TEXT, SURE = 0.3, 0.5  # of a pixel to be text, of a line on average
GROWTH = 1.6  # the detector marks the middle of lines; "Real-time Scene Text Detection", Liao et al., 2020
UPSIDE_DOWN = 0.9
HEIGHT, WIDTH_STEP = 48, 160  # of the lines that are read: their widths are multiples, for fewer kernels


def read_ppm(data):
    """The pixels of a PPM file, (height, width, 3), uint8."""
    fields, at = [], 0
    while len(fields) < 4:
        end = at
        while end < len(data) and not chr(data[end]).isspace():
            end += 1
        word, at = data[at:end], end + 1
        if word.startswith(b"#"):
            at = data.index(b"\n", end) + 1
        elif word:
            fields.append(word)
    if fields[0] != b"P6" or fields[3] != b"255":
        raise SystemExit("expected a PPM file, format P6, of 8 bits")
    width, height = int(fields[1]), int(fields[2])
    return Tensor(data[at : at + height * width * 3], dtype="uint8").reshape(height, width, 3)


def prepared(pixels, height, width):
    """Pixels (h, w, 3) as a model takes them: (1, 3, height, width), blue first, from -1 to 1."""
    planes = pixels.flip(-1).permute(2, 0, 1).unsqueeze(0).cast("float32")
    resized = (
        planes.interpolate((height, width), mode="linear") if planes.shape[2:] != (height, width) else planes
    )
    return (resized / 255 - 0.5) / 0.5


class Reader:
    """The three models. `read` gives the lines of a picture, from its top to its bottom."""

    def __init__(self, folder):
        self.find, self.turn, self.recognize = [
            onnx.load(Path(folder) / name) for name in (DETECTOR, CLASSIFIER, RECOGNIZER)
        ]
        # Of the recognizer's classes the first is the blank, the last the space.
        self.characters = ["", *self.recognize.model.metadata["character"].split("\n"), " "]

    def read(self, pixels):
        """Pairs of a line's box (left, top, right, bottom) and its text."""
        found = []
        for left, top, right, bottom in self.lines(pixels):
            line = pixels[top:bottom, left:right]
            if self.is_upside_down(line):
                line = line.flip(0, 1)
            found.append(((left, top, right, bottom), self.text(line)))
        return [(box, text) for box, text in found if text]

    def lines(self, pixels):
        """The boxes of lines of text."""
        height, width, _ = pixels.shape
        scale = max(1, SHORT_SIDE / min(height, width))
        rows, columns = [max(round(n * scale / 32), 1) * 32 for n in (height, width)]
        (marks,) = self.find(x=prepared(pixels, rows, columns)).values()
        sure = marks.reshape(rows, columns).tolist()
        boxes = []
        for region in regions(sure):
            ys, xs = [y for y, _ in region], [x for _, x in region]
            top, bottom, left, right = min(ys), max(ys) + 1, min(xs), max(xs) + 1
            if min(bottom - top, right - left) < 3 or sum(sure[y][x] for y, x in region) < SURE * len(region):
                continue
            grow = (bottom - top) * (right - left) * GROWTH / (2 * (bottom - top + right - left))
            x_scale, y_scale = width / columns, height / rows
            boxes.append((
                max(round((left - grow) * x_scale), 0),
                max(round((top - grow) * y_scale), 0),
                min(round((right + grow) * x_scale), width),
                min(round((bottom + grow) * y_scale), height),
            ))  # fmt: skip
        return sorted(boxes, key=lambda box: (box[1], box[0]))

    def is_upside_down(self, line):
        (chances,) = self.turn(x=padded(line, HEIGHT, 192, 192)).values()
        return chances.tolist()[0][1] > UPSIDE_DOWN

    def text(self, line):
        """The characters of a line: the best class at each place, without repetitions and blanks (CTC)."""
        (chances,) = self.recognize(x=padded(line, HEIGHT, WIDTH_STEP)).values()
        best = chances[0].argmax(-1).tolist()
        kept = [c for i, c in enumerate(best) if c and (i == 0 or c != best[i - 1])]
        return "".join(self.characters[c] for c in kept).strip()


def padded(line, height, step, most=None):
    """A line of a picture with this height, and zeros behind it up to a multiple of `step`."""
    width = max(round(line.shape[1] * height / line.shape[0]), 1)
    width = width if most is None else min(width, most)
    x = prepared(line, height, width)
    return x.pad(((0, 0), (0, 0), (0, 0), (0, -width % step)))


def regions(sure):
    """The connected pixels of text, each region a list of (y, x)."""
    rows, columns = len(sure), len(sure[0])
    left = {(y, x) for y, row in enumerate(sure) for x, chance in enumerate(row) if chance > TEXT}
    while left:
        stack = [left.pop()]
        region = []
        while stack:
            y, x = stack.pop()
            region.append((y, x))
            for place in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if place in left:
                    left.remove(place)
                    stack.append(place)
        if 0 < len(region) < rows * columns:
            yield region


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("picture", type=Path, help="a PPM file")
    parser.add_argument("--models", required=True, help="the folder with the ONNX files")
    options = parser.parse_args()
    for box, text in Reader(options.models).read(read_ppm(options.picture.read_bytes())):
        print(*box, text, sep="\t")


if __name__ == "__main__":
    main()
