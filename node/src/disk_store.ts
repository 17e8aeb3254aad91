/** Bytes kept in files of the user's cache folder. */

import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

import type { ByteStore } from "../../loader/src/store";

function defaultFolder(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "polygrad", "node");
}

/** A store in `folder`. Entries appear whole, also when two processes write the same one. */
export function diskStore(folder: string = defaultFolder()): ByteStore {
  return {
    async get(key) {
      try {
        return Uint8Array.from(await readFile(join(folder, key)));
      } catch {
        return undefined;
      }
    },
    async set(key, bytes) {
      const temporary = join(folder, `${key}.${randomUUID()}`);
      try {
        await mkdir(folder, { recursive: true });
        await writeFile(temporary, bytes);
        await rename(temporary, join(folder, key));
      } catch {
        // A cache that cannot be written is no cache: the next start compiles again.
      }
    },
  };
}
