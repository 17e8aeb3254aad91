/** Bundles `app.mjs` of a folder into its `site/app.js`: `node bundle.mjs esbuild|vite|webpack FOLDER`. */

import { join } from "node:path";

const BUNDLERS = {
  async esbuild(folder) {
    const { build } = await import("esbuild");
    const [entry, outfile] = [join(folder, "app.mjs"), join(folder, "site/app.js")];
    await build({ entryPoints: [entry], outfile, bundle: true, minify: true, format: "esm" });
  },

  async vite(folder) {
    const { build } = await import("vite");
    const lib = { entry: join(folder, "app.mjs"), formats: ["es"], fileName: () => "app.js" };
    const options = { outDir: "site", emptyOutDir: false, lib, copyPublicDir: false };
    await build({ root: folder, configFile: false, logLevel: "error", build: options });
  },

  async webpack(folder) {
    const { default: webpack } = await import("webpack");
    const output = { path: join(folder, "site"), filename: "app.js", library: { type: "module" } };
    const options = {
      mode: "production",
      entry: join(folder, "app.mjs"),
      output,
      experiments: { outputModule: true },
    };
    const stats = await new Promise((resolve, reject) => {
      webpack(options, (error, found) => (error ? reject(error) : resolve(found)));
    });
    if (stats.hasErrors() || stats.hasWarnings()) throw new Error(stats.toString());
  },
};

const [name, folder] = process.argv.slice(2);
await BUNDLERS[name](folder);
