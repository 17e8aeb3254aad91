/**
 * Pixels at another size, as elements of a model's input. The filter is a triangle as wide as the larger of an old and a new
 * pixel, as in Pillow's BILINEAR and torch's `interpolate` with `antialias`.
 */

import type { Pixels } from "../make";

/** The weights of old pixels in a new one, from the old pixel `first` on. */
interface Weights {
  readonly first: number;
  readonly weights: Float64Array;
}

function weightsOf(from: number, to: number): readonly Weights[] {
  const scale = from / to;
  const support = Math.max(scale, 1);
  return Array.from({ length: to }, (_, i) => {
    const center = (i + 0.5) * scale;
    const first = Math.max(Math.trunc(center - support + 0.5), 0);
    const end = Math.min(Math.trunc(center + support + 0.5), from);
    const weights = new Float64Array(end - first);
    for (let j = 0; j < weights.length; j++) {
      weights[j] = Math.max(1 - Math.abs((first + j - center + 0.5) / support), 0);
    }
    const sum = weights.reduce((a, b) => a + b, 0);
    return { first, weights: weights.map((w) => w / sum) };
  });
}

/** The shares of red, green and blue in a grey value: ITU-R 601. */
const GREY = [0.299, 0.587, 0.114] as const;

/** An image of the size [width, height] as elements from 0 to 1 in the order channels, rows, columns. Alpha is left out. */
export function resize(
  pixels: Pixels,
  width: number,
  height: number,
  channels: 1 | 3,
): Float32Array<ArrayBuffer> {
  const { data, width: oldWidth, height: oldHeight } = pixels;
  const [columns, rows] = [weightsOf(oldWidth, width), weightsOf(oldHeight, height)];
  const out = new Float32Array(channels * height * width);
  const valueAt = (pixel: number, channel: number): number =>
    channels === 3
      ? (data[4 * pixel + channel] ?? 0)
      : GREY.reduce((sum, share, i) => sum + share * (data[4 * pixel + i] ?? 0), 0);
  const narrow = new Float64Array(oldHeight * width);
  for (let c = 0; c < channels; c++) {
    for (let y = 0; y < oldHeight; y++) {
      for (const [x, { first, weights }] of columns.entries()) {
        let sum = 0;
        for (let j = 0; j < weights.length; j++) {
          sum += (weights[j] ?? 0) * valueAt(y * oldWidth + first + j, c);
        }
        narrow[y * width + x] = sum;
      }
    }
    for (const [y, { first, weights }] of rows.entries()) {
      for (let x = 0; x < width; x++) {
        let sum = 0;
        for (let j = 0; j < weights.length; j++)
          sum += (weights[j] ?? 0) * (narrow[(first + j) * width + x] ?? 0);
        out[(c * height + y) * width + x] = sum / 255;
      }
    }
  }
  return out;
}
