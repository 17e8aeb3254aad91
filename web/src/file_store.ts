/**
 * Stores of files in a page: the origin's private file system (OPFS) or, where it is missing or refuses, as in private
 * windows, the browser's cache storage.
 */

import type { FileStore } from "../../wasm_runtime/src/cache/store";
import { StoredFiles } from "../../wasm_runtime/src/cache/stored_files";

const ROOT = "polygrad-files";

/** What `work` gives; undefined where there is no such file or folder. */
async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotFoundError") return undefined;
    throw error;
  }
}

/** The end of the names under which Chromium writes a file before it is closed. */
const UNFINISHED = ".crswap";

async function namesIn(folder: FileSystemDirectoryHandle): Promise<string[]> {
  const names: string[] = [];
  for await (const name of folder.keys()) if (!name.endsWith(UNFINISHED)) names.push(name);
  return names;
}

/**
 * Work in a folder, beside which no other page or worker writes there: while a file is written, Chromium has moments without
 * it.
 */
function locked<T>(folder: string, mode: LockMode, work: () => Promise<T>): Promise<T> {
  return navigator.locks.request(`${ROOT} ${folder}`, { mode }, work);
}

/** A store in the origin's private file system. Rejects where there is none. */
export async function originStore(): Promise<FileStore> {
  if (!("createWritable" in FileSystemFileHandle.prototype))
    throw new Error("the file system cannot be written");
  const origin = await navigator.storage.getDirectory();
  const root = await origin.getDirectoryHandle(ROOT, { create: true });
  const find = (folder: string): Promise<FileSystemDirectoryHandle | undefined> =>
    ifThere(root.getDirectoryHandle(folder));
  return {
    folders: () => namesIn(root),
    names: (folder) =>
      locked(folder, "shared", async () => {
        const found = await find(folder);
        return found === undefined ? [] : namesIn(found);
      }),
    read: (folder, name) =>
      locked(folder, "shared", async () => {
        const found = await find(folder);
        const handle = found && (await ifThere(found.getFileHandle(name)));
        return handle && new Uint8Array(await (await handle.getFile()).arrayBuffer());
      }),
    write: (folder, name, bytes) =>
      locked(folder, "exclusive", async () => {
        const made = await root.getDirectoryHandle(folder, { create: true });
        const handle = await made.getFileHandle(name, { create: true });
        const stream = await handle.createWritable(); // the file changes when the stream is closed
        try {
          await stream.write(bytes);
          await stream.close();
        } catch (error) {
          await stream.abort().catch(() => undefined);
          throw error;
        }
      }),
    remove: (folder, name) =>
      locked(folder, "exclusive", async () => {
        if (name === undefined) await ifThere(root.removeEntry(folder, { recursive: true }));
        else await ifThere((await find(folder))?.removeEntry(name) ?? Promise.resolve());
      }),
  };
}

/** A store in the browser's cache storage, where a folder is a cache. Rejects where there is none. */
export async function cacheStore(): Promise<FileStore> {
  await caches.has(ROOT); // private windows of some browsers refuse
  const start = `${ROOT} `;
  const open = (folder: string): Promise<Cache> => caches.open(start + folder);
  const address = (name: string): string => `https://polygrad.invalid/${name}`;
  return {
    async folders() {
      const names = await caches.keys();
      return names.filter((name) => name.startsWith(start)).map((name) => name.slice(start.length));
    },
    async names(folder) {
      if (!(await caches.has(start + folder))) return [];
      const requests = await (await open(folder)).keys();
      return requests.map(({ url }) => url.slice(address("").length));
    },
    async read(folder, name) {
      const response = await caches.match(address(name), { cacheName: start + folder });
      return response && new Uint8Array(await response.arrayBuffer());
    },
    async write(folder, name, bytes) {
      await (await open(folder)).put(address(name), new Response(bytes));
    },
    async remove(folder, name) {
      if (name === undefined) await caches.delete(start + folder);
      else if (await caches.has(start + folder)) await (await open(folder)).delete(address(name));
    },
  };
}

/** The store of this origin; undefined in contexts that are not secure, and where the browser refuses. */
async function openStore(): Promise<FileStore | undefined> {
  if (!globalThis.isSecureContext) return undefined; // there are no digests
  try {
    return await originStore();
  } catch {
    return cacheStore().catch(() => undefined);
  }
}

/** The files of this origin's store. */
export const openFiles = (): StoredFiles => new StoredFiles(openStore);
