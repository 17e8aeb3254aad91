import assert from "node:assert/strict";
import { test } from "node:test";

import { resize } from "../src/api/datasets/resize";

const [HEIGHT, WIDTH] = [5, 7];

/** An image whose colours are (7 i² + 3 i) mod 256. */
function image(): { data: Uint8ClampedArray; width: number; height: number } {
  const data = new Uint8ClampedArray(HEIGHT * WIDTH * 4).fill(255);
  for (let i = 0; i < HEIGHT * WIDTH * 3; i++)
    data[4 * Math.floor(i / 3) + (i % 3)] = (7 * i * i + 3 * i) % 256;
  return { data, width: WIDTH, height: HEIGHT };
}

// torch.nn.functional.interpolate(x, size, mode="bilinear", antialias=True) / 255
const CASES = [
  [3, 4, [0.15019, 0.27442, 0.33882, 0.27632], [0.36457, 0.61244, 0.54095, 0.59144], 18.441177],
  [8, 9, [0.0, 0.18824, 0.18126, 0.11416], [0.79041, 0.40349, 0.40261, 0.97255], 109.612366],
  [5, 2, [0.15723, 0.19061, 0.30625, 0.48737], [0.40438, 0.50816, 0.57401, 0.61541], 15.535796],
] as const;

for (const [height, width, first, last, sum] of CASES) {
  test(`an image of ${WIDTH} x ${HEIGHT} at ${width} x ${height} is torch's within 1e-5`, () => {
    const out = resize(image(), width, height, 3);
    assert.equal(out.length, 3 * height * width);
    const near = (a: number, b: number): void => {
      assert.ok(Math.abs(a - b) < 1e-5, `${a} ${b}`);
    };
    for (const [i, x] of first.entries()) near(out[i] ?? NaN, x);
    for (const [i, x] of last.entries()) near(out[out.length - 4 + i] ?? NaN, x);
    near(out.reduce((a, b) => a + b, 0) / sum, 1);
  });
}

test("an image at its own size is its elements, and a grey one its luminance", () => {
  const { data } = image();
  const colours = resize(image(), WIDTH, HEIGHT, 3);
  const grey = resize(image(), WIDTH, HEIGHT, 1);
  for (const i of [0, 9, 34]) {
    const [r = 0, g = 0, b = 0] = data.subarray(4 * i);
    for (const [c, x] of [r, g, b].entries())
      assert.equal(colours[c * HEIGHT * WIDTH + i], Math.fround(x / 255));
    assert.ok(Math.abs((grey[i] ?? NaN) - (0.299 * r + 0.587 * g + 0.114 * b) / 255) < 1e-6);
  }
});
