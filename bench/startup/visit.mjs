/**
 * One visit: `visit.html?library=NAME` loads the library, has it multiply two matrices, and sets `visit` to the
 * seconds since the navigation began and to the product. `after` settles when the page may be left.
 */

import { A, B } from "./matrices.mjs";

const name = new URL(document.URL).searchParams.get("library");
try {
  const { multiply } = await import(`./${name}.mjs`);
  const { product, after } = await multiply(A, B);
  globalThis.visit = { seconds: performance.now() / 1000, product: Array.from(product), after };
} catch (error) {
  globalThis.visit = {
    error: String(error?.message ?? error)
      .split("\n")
      .at(-1),
  };
}
