/**
 * One visit: `visit.html?library=NAME` loads the library, has it multiply two matrices, and sets `visit` to the
 * seconds since the navigation began (`seconds`), those since this script did (`script`) and the product. `after`
 * settles when the page may be left.
 */

import { A, B } from "./matrices.mjs";

const started = performance.now();
const name = new URL(document.URL).searchParams.get("library");
try {
  const { multiply } = await import(`./${name}.mjs`);
  const { product, after } = await multiply(A, B);
  const now = performance.now();
  globalThis.visit = {
    seconds: now / 1000,
    script: (now - started) / 1000,
    product: Array.from(product),
    after,
  };
} catch (error) {
  globalThis.visit = {
    error: String(error?.message ?? error)
      .split("\n")
      .at(-1),
  };
}
