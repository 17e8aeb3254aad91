/** jax-js, WebAssembly device. */

import * as jax from "/peers/@jax-js/jax/dist/index.js";

export async function multiply(a, b) {
  await jax.init("wasm");
  jax.defaultDevice("wasm");
  const matrix = (values) => jax.numpy.array(Float32Array.from(values)).reshape([4, 4]);
  return { product: await jax.numpy.matmul(matrix(a), matrix(b)).data() };
}
