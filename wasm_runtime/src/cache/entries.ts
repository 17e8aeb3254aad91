/**
 * Stored files. Each has a folder with a manifest, the time of its last use, and blocks that are named by their SHA-256.
 *
 * So nothing is locked: what two writers of one file write is the same, or has other names. A manifest that lists a block
 * which is not there, or is damaged, is that of a file whose rest has to be fetched again.
 */

import type { Version } from "./request";
import { digestOf } from "../digest";
import type { FileStore } from "./store";

/** The most bytes of a block. */
export const BLOCK = 4 << 20;

const FORMAT = 1;
const [MANIFEST, USED] = ["manifest.json", "used"];

/** What is stored of a file, or that a server does not have it. */
export interface Entry extends Version {
  readonly url: string;
  /** The media type that the server told. */
  readonly type?: string | undefined;
  /** Until when the file may be used without asking, in milliseconds. */
  readonly fresh: number;
  /** The digests of its blocks, in order, and the length of all. */
  readonly blocks: readonly string[];
  readonly bytes: number;
  readonly whole: boolean;
  /** The digest of the whole file, where it was asked for and found to be so. */
  readonly sha256?: string | undefined;
  /** The status with which the server said that there is no such file. */
  readonly missing?: number | undefined;
}

/** A file of the cache. */
export interface CachedFile {
  readonly url: string;
  /** How many bytes are stored. */
  readonly bytes: number;
  /** When it was used last. */
  readonly used: Date;
  /** Whether it is whole; otherwise its download was interrupted, and goes on when the file is needed. */
  readonly whole: boolean;
}

/** A file of the cache in its folder. */
interface Stored extends CachedFile {
  readonly folder: string;
  readonly missing: boolean;
}

const encoded = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

function parseEntry(bytes: Uint8Array): Entry | undefined {
  try {
    const { format, ...entry } = JSON.parse(new TextDecoder().decode(bytes)) as Entry & { format: number };
    const isEntry = format === FORMAT && Array.isArray(entry.blocks) && Number.isFinite(entry.bytes);
    return isEntry ? entry : undefined;
  } catch {
    return undefined;
  }
}

/** The name of the folder of an address. */
const folderOf = async (url: string): Promise<string> => (await digestOf(encoded(url))).slice(0, 32);

export class Entries {
  readonly #store: FileStore;
  /** The bytes of all files as far as it is known: others may store files, too. */
  #total: number | undefined;

  constructor(store: FileStore) {
    this.#store = store;
  }

  /** What is stored of the file at `url`. */
  async find(url: string): Promise<Entry | undefined> {
    const entry = await this.#entryIn(await folderOf(url));
    return entry?.url === url ? entry : undefined;
  }

  async save(entry: Entry): Promise<void> {
    const text = JSON.stringify({ format: FORMAT, ...entry });
    await this.#store.write(await folderOf(entry.url), MANIFEST, encoded(text));
  }

  /** Note that a file is used now. */
  async touch(url: string): Promise<void> {
    await this.#store.write(await folderOf(url), USED, encoded(String(Date.now())));
  }

  /** A block of a file; undefined where it is not there or damaged. */
  async block(url: string, digest: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const bytes = await this.#store.read(await folderOf(url), digest).catch(() => undefined);
    return bytes !== undefined && (await digestOf(bytes)) === digest ? bytes : undefined;
  }

  /** Store a block of a file; its digest. */
  async addBlock(url: string, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
    const digest = await digestOf(bytes);
    await this.#store.write(await folderOf(url), digest, bytes);
    if (this.#total !== undefined) this.#total += bytes.length;
    return digest;
  }

  /** Remove blocks of other versions from the folder of a file. Those stay that somebody uses. */
  async sweep({ url, blocks }: Entry): Promise<void> {
    const folder = await folderOf(url);
    const kept = new Set([MANIFEST, USED, ...blocks]);
    const others = (await this.#store.names(folder)).filter((name) => !kept.has(name));
    await Promise.allSettled(others.map((name) => this.#store.remove(folder, name)));
    this.#total = undefined;
  }

  /** All files, those first that were not used for the longest time. */
  async list(): Promise<CachedFile[]> {
    const files = (await this.#stored()).filter(({ missing }) => !missing);
    return files.map(({ url, bytes, used, whole }) => ({ url, bytes, used, whole }));
  }

  /** Remove a file; whether it was there. */
  async remove(url: string): Promise<boolean> {
    const folder = await folderOf(url);
    const found = (await this.#store.names(folder)).includes(MANIFEST);
    await this.#store.remove(folder);
    this.#total = undefined;
    return found;
  }

  /** Remove all files. Rejects where one cannot be removed, after the others were. */
  async clear(): Promise<void> {
    const folders = await this.#store.folders();
    const removed = await Promise.allSettled(folders.map((folder) => this.#store.remove(folder)));
    this.#total = undefined;
    const failed = removed.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  /**
   * Make room for `bytes` more of the file at `url`: remove others, those first that were not used for the longest time, until
   * no more than `limit` is stored. Whether there is room.
   */
  async makeRoom(url: string, bytes: number, limit: number): Promise<boolean> {
    if (this.#total !== undefined && this.#total + bytes <= limit) return true;
    const stored = await this.#stored();
    let total = stored.reduce((sum, file) => sum + file.bytes, 0);
    for (const file of stored) {
      if (total + bytes <= limit) break;
      if (file.url !== url && (await this.#removed(file.folder))) total -= file.bytes;
    }
    this.#total = total;
    return total + bytes <= limit;
  }

  /** Remove the file, other than that at `url`, that was not used for the longest time; whether there was one. */
  async removeOldest(url: string): Promise<boolean> {
    this.#total = undefined;
    for (const file of await this.#stored()) {
      if (file.url !== url && file.bytes > 0 && (await this.#removed(file.folder))) return true;
    }
    return false;
  }

  /** Remove a folder; whether that was possible. */
  async #removed(folder: string): Promise<boolean> {
    return this.#store.remove(folder).then(
      () => true,
      () => false,
    );
  }

  async #entryIn(folder: string): Promise<Entry | undefined> {
    const bytes = await this.#store.read(folder, MANIFEST).catch(() => undefined);
    return bytes && parseEntry(bytes);
  }

  /** All files, by the time of their last use. Folders without a manifest are removed: their writer was interrupted. */
  async #stored(): Promise<Stored[]> {
    const found = await Promise.all(
      (await this.#store.folders()).map(async (folder): Promise<Stored | undefined> => {
        const entry = await this.#entryIn(folder);
        if (entry === undefined) {
          await this.#removed(folder);
          return undefined;
        }
        const time = await this.#store.read(folder, USED).catch(() => undefined);
        const used = new Date(Number(time ? new TextDecoder().decode(time) : 0));
        const { url, bytes, whole, missing } = entry;
        return { folder, url, bytes, used, whole, missing: missing !== undefined };
      }),
    );
    const files = found.filter((file) => file !== undefined);
    return files.sort((a, b) => a.used.getTime() - b.used.getTime());
  }
}
