/** The numbers that every library computes with, as `bench/libraries/inputs.py` and `shapes.py` have them. */

const size = (shape) => shape.reduce((a, b) => a * b, 1);

/** Float32 in [-1, 1), a hash of the seed and the position. */
export function uniform(seed, ...shape) {
  const out = new Float32Array(size(shape));
  const start = Math.imul(seed, 0x85ebca6b);
  for (let i = 0; i < out.length; i++) {
    let h = (Math.imul(i, 0x9e3779b1) + start) | 0;
    h ^= h >>> 15;
    h = Math.imul(h, 0x2c1b3c6d);
    h ^= h >>> 12;
    h = Math.imul(h, 0x297a2d39);
    h ^= h >>> 15;
    out[i] = (h >>> 8) / 2 ** 23 - 1;
  }
  return out;
}

/** `uniform` in a range of ±scale. */
export function scaled(seed, shape, scale) {
  const out = uniform(seed, ...shape);
  for (let i = 0; i < out.length; i++) out[i] *= scale;
  return out;
}

const ARRAYS = {
  float64: Float64Array,
  float32: Float32Array,
  float16: globalThis.Float16Array,
  int64: BigInt64Array,
  int32: Int32Array,
  int8: Int8Array,
  uint8: Uint8Array,
};

/** `uniform` put into [low, high), whole numbers for an integer dtype, as `operand` of `inputs.py`. */
export function operand(seed, { shape, dtype, low, high }) {
  const out = uniform(seed, ...shape);
  if (dtype === "float32" && low === -1 && high === 1) return out;
  const type = ARRAYS[dtype];
  if (type === undefined) throw new Error(`has no ${dtype}`);
  const whole = dtype.includes("int");
  const put = (x) => Math.fround(Math.fround(Math.fround(x + 1) * ((high - low) / 2)) + low);
  const number = (x) => (low === -1 && high === 1 ? x : whole ? Math.floor(put(x)) : put(x));
  return type.from(out, dtype === "int64" ? (x) => BigInt(number(x)) : number);
}

/** Of random numbers: the mean and the mean square. */
export function moments(array) {
  let [sum, squares] = [0, 0];
  for (const x of array) {
    sum += x;
    squares += x * x;
  }
  return [sum / array.length, squares / array.length];
}

/** About a thousand elements of an array, evenly spread. */
export function numbers(array) {
  const step = Math.floor(array.length / 1000) | 1;
  return Array.from({ length: Math.ceil(array.length / step) }, (_, i) => Number(array[i * step]));
}

export const LABELS = Array.from({ length: 64 }, (_, i) => (7 * i) % 10);
export const MLP_LR = 0.1;
export const CONVNET_LR = 0.05;
export const BLOCK_LR = 1e-4;
export const [HUNDRED, HUNDRED_SCALE] = [100, 0.6]; // products one after the other
export const GRADIENT_SEED = 99; // of the gradient that comes in at an output
export const STEPS_CHECKED = 3;

export const MLP = {
  w1: [2, [784, 128], 0.04],
  b1: [3, [128], 0.1],
  w2: [4, [128, 10], 0.1],
  b2: [5, [10], 0.1],
};

export const TINY = {
  w1: [2, [4, 4], 0.5],
  b1: [3, [4], 0.1],
  w2: [4, [4, 10], 0.5],
  b2: [5, [10], 0.1],
};

export const CONVNET = {
  w1: [2, [16, 1, 3, 3], 0.3],
  b1: [3, [16], 0.1],
  w2: [4, [32, 16, 3, 3], 0.1],
  b2: [5, [32], 0.1],
  w3: [6, [4608, 10], 0.02],
  b3: [7, [10], 0.1],
};

const SMALL_SHAPES = [[64], [64, 64], [32, 3, 3, 3], [128]];
export const SMALL = Object.fromEntries(
  Array.from({ length: 40 }, (_, i) => [`p${i}`, [i + 1, SMALL_SHAPES[i % SMALL_SHAPES.length], 0.1]]),
);
export const SMALL_LR = 1e-2;
export const ADAM = { b1: 0.9, b2: 0.999, epsilon: 1e-8 };

export const [WIDTH, HEADS, LENGTH] = [768, 12, 128];
export const BLOCK = {
  ln1_w: [2, [WIDTH], 1],
  ln1_b: [3, [WIDTH], 0.1],
  qkv_w: [4, [WIDTH, 3 * WIDTH], 0.05],
  qkv_b: [5, [3 * WIDTH], 0.1],
  out_w: [6, [WIDTH, WIDTH], 0.05],
  out_b: [7, [WIDTH], 0.1],
  ln2_w: [8, [WIDTH], 1],
  ln2_b: [9, [WIDTH], 0.1],
  up_w: [10, [WIDTH, 4 * WIDTH], 0.05],
  up_b: [11, [4 * WIDTH], 0.1],
  down_w: [12, [4 * WIDTH, WIDTH], 0.05],
  down_b: [13, [WIDTH], 0.1],
};
