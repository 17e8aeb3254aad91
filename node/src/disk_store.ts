/** Bytes kept in files of the user's cache folder. */

import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, stat, unlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

import { kindOf, type ByteStore } from "../../loader/src/store";
import { readBytes } from "./read_bytes";

/** The number of entries of a kind that stay: several versions of Node and polygrad may be in use. */
const KEPT = 4;

/** The cache folder of polygrad, for Python too. */
export function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "polygrad");
}

/** Remove all but the newest entries of the kind of `key`. */
async function prune(folder: string, key: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(kindOf(key)));
  const dated = await Promise.all(
    names.map(async (name) => ({ name, date: (await stat(join(folder, name))).mtimeMs })),
  );
  const oldFirst = dated.sort((a, b) => a.date - b.date);
  for (const { name } of oldFirst.slice(0, -KEPT)) await unlink(join(folder, name));
}

/** A store in `folder`. An entry appears only when it is whole, also when two processes write it. */
export function diskStore(folder: string = join(cacheFolder(), "node")): ByteStore {
  return {
    async find(key) {
      const path = join(folder, key);
      try {
        const { size } = await stat(path);
        return { length: size, read: () => readBytes(path) };
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
        await prune(folder, key);
      } catch {
        // The folder cannot be written: the next start is like this one.
      }
    },
  };
}
