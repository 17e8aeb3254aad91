/** A store of files in a folder of the disk. A name appears when all of its bytes are written. */

import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import type { FileStore } from "../../wasm_runtime/src/cache/store";

/** The end of the names of files that are being written. */
const UNFINISHED = ".part";

/** What `work` gives; `otherwise` where there is no such file or folder. */
async function ifThere<T>(work: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return otherwise;
    throw error;
  }
}

export function fileStore(root: string): FileStore {
  return {
    folders: () => ifThere(readdir(root), []),
    async names(folder) {
      const names = await ifThere(readdir(join(root, folder)), []);
      return names.filter((name) => !name.endsWith(UNFINISHED));
    },
    read: (folder, name) => ifThere(readFile(join(root, folder, name)), undefined),
    async write(folder, name, bytes) {
      await mkdir(join(root, folder), { recursive: true });
      const temporary = join(root, folder, `${name}.${randomUUID()}${UNFINISHED}`);
      try {
        await writeFile(temporary, bytes);
        await rename(temporary, join(root, folder, name));
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      }
    },
    remove: (folder, name) => rm(join(root, folder, name ?? ""), { recursive: true, force: true }),
  };
}
