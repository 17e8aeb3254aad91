/** polygrad without Python: the product exported as a model. */

import { load } from "/dist/polygrad-runtime.mjs";

export async function multiply(a, b) {
  const model = await load("/models/matmul-4-4-4.pgrd", { threads: 1 });
  const { product } = await model.run({ a: Float32Array.from(a), b: Float32Array.from(b) });
  return { product: product.data };
}
