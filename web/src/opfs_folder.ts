/** A folder in the private file system of the origin (OPFS), as `Folder` of the API. */

import { ArgumentError, type Folder } from "../../wasm_runtime/src/api/index";

/** `move` is not in TypeScript's library yet. */
interface MovableFile extends FileSystemFileHandle {
  move(name: string): Promise<void>;
}

/** Throws ArgumentError where there is no such file system. */
export function opfsFolder(path: string): Folder {
  const { storage } = navigator as { storage?: StorageManager };
  if (storage === undefined || !("getDirectory" in storage)) {
    throw new ArgumentError(
      `folder ${path}: expected a browser with a private file system (OPFS) and a secure context, https: or localhost`,
    );
  }
  const names = path.split("/").filter((name) => name !== "");
  const open = async (create: boolean): Promise<FileSystemDirectoryHandle> => {
    let folder = await storage.getDirectory();
    for (const name of names) folder = await folder.getDirectoryHandle(name, { create });
    return folder;
  };
  const openIfThere = async (): Promise<FileSystemDirectoryHandle | undefined> => {
    try {
      return await open(false);
    } catch (error) {
      if ((error as DOMException).name === "NotFoundError") return undefined;
      throw error;
    }
  };
  return {
    async list() {
      const folder = await openIfThere();
      const files: string[] = [];
      if (folder !== undefined) for await (const name of folder.keys()) files.push(name);
      return files;
    },
    async read(name) {
      const file = await (await (await open(false)).getFileHandle(name)).getFile();
      return new Uint8Array(await file.arrayBuffer());
    },
    async write(name, bytes) {
      const folder = await open(true);
      const temporary = `${name}.${crypto.randomUUID()}`;
      // A file is there, empty, from when it is made; so it gets its name when it is whole.
      const file = (await folder.getFileHandle(temporary, { create: true })) as MovableFile;
      try {
        const stream = await file.createWritable();
        await stream.write(bytes);
        await stream.close();
        await file.move(name);
      } catch (error) {
        await folder.removeEntry(temporary).catch(() => undefined);
        throw error;
      }
    },
    async remove(name) {
      await (await openIfThere())?.removeEntry(name);
    },
  };
}
