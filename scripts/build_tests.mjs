/** Builds programs of the TypeScript tests, which Node runs. */

import { fileURLToPath } from "node:url";

import { build } from "esbuild";

/** The checkout, where the programs run. */
export const root = fileURLToPath(new URL("../", import.meta.url));

/** The paths of the programs that are built of these sources, which are paths in the checkout. */
export async function buildTests(sources) {
  await build({
    entryPoints: sources.map((name) => root + name),
    outbase: root,
    outdir: `${root}build/tests`,
    bundle: true,
    format: "esm",
    outExtension: { ".js": ".mjs" },
    platform: "node",
    external: ["pyodide", "esbuild"],
    loader: { ".py": "text" },
    define: {
      POLYGRAD_ASSETS: JSON.stringify({ pyodide: "1.2.3" }),
      POLYGRAD_RELEASE: JSON.stringify("0.1.0"),
    },
    sourcemap: "inline",
    logLevel: "warning",
  });
  return sources.map((name) => `${root}build/tests/${name.replace(/ts$/, "mjs")}`);
}
