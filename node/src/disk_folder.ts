/** A folder on the disk, as `Folder` of the API. */

import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";

import type { Folder } from "../../wasm_runtime/src/api/index";
import { readBytes } from "./read_bytes";

export function diskFolder(path: string): Folder {
  return {
    async list() {
      try {
        return await readdir(path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
        throw error;
      }
    },
    read: (name) => readBytes(join(path, name)),
    async write(name, bytes) {
      await mkdir(path, { recursive: true });
      const temporary = join(path, `${name}.${randomUUID()}`);
      try {
        const file = await open(temporary, "wx");
        try {
          await file.writeFile(bytes);
          await file.sync();
        } finally {
          await file.close();
        }
        await rename(temporary, join(path, name));
      } finally {
        await rm(temporary, { force: true });
      }
    },
    remove: (name) => rm(join(path, name), { force: true }),
  };
}
