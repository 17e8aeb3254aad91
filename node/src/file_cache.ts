/** The cache of files from the network, in a folder. */

import { createHash } from "node:crypto";
import { join } from "node:path";

import { network } from "../../wasm_runtime/src/addresses";
import { FileCache } from "../../wasm_runtime/src/cache/file_cache";
import { StoredFiles } from "../../wasm_runtime/src/cache/stored_files";
import type { FileStore } from "../../wasm_runtime/src/cache/store";
import { cacheFolder } from "./disk_store";
import { fileStore } from "./file_store";
import { addressesOf } from "./network";

network.addressesOf = addressesOf;

const caches = new Map<string | false | undefined, FileCache>();

/** The store in `folder`. Deno may not be allowed to tell the user's folder: then there is none. */
function openStore(folder: string | false | undefined): FileStore | undefined {
  if (folder === false) return undefined;
  try {
    return fileStore(join(folder ?? cacheFolder(), "files"));
  } catch {
    return undefined;
  }
}

/** The cache in `folder`; by default in the user's cache folder. With `false` there is none. */
export function cacheIn(folder: string | false | undefined): FileCache {
  let cache = caches.get(folder);
  if (cache === undefined) {
    const files = new StoredFiles(
      () => Promise.resolve(openStore(folder)),
      () => createHash("sha256"),
    );
    cache = new FileCache(() => Promise.resolve(files));
    caches.set(folder, cache);
  }
  return cache;
}

/** The files at addresses that were kept: models, weights. */
export const cache = cacheIn(undefined);
