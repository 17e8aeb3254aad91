/** The cache of files in a page. What stores them is a file of its own: see `scripts/build.mjs`. */

import { FileCache } from "../../wasm_runtime/src/cache/file_cache";
import type { StoredFiles } from "../../wasm_runtime/src/cache/stored_files";

async function load(): Promise<StoredFiles> {
  try {
    return (await import("./file_store")).openFiles();
  } catch (error) {
    throw new Error(
      "polygrad: expected polygrad-cache.mjs beside this script, for the files that are kept: serve it, or pass the option " +
        `cache: false; ${String(error)}`,
      { cause: error },
    );
  }
}

/** The files at addresses that were kept: models, weights. */
export const cache = new FileCache(load);
