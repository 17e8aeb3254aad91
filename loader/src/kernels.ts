/**
 * Compiled kernels kept from one visit to the next. Python asks for them while it computes, when nothing can be waited
 * for; so all are read at the start, and new ones are written once nobody waits for this thread. Each has a checksum
 * of Python's: what is damaged is compiled again.
 */

import type { PyProxy } from "./pyodide_types";

type Bytes = Uint8Array<ArrayBuffer>;

/** A database for kernels. Losing them costs only time, so it fails in silence. */
export interface KernelStorage {
  /** The kernels of this build of polygrad, by key; none when they cannot be read. */
  load(build: string): Promise<ReadonlyMap<string, Bytes>>;
  /** Add some and remove some, all or none, and remove those of all other builds. Whether that could be done. */
  save(build: string, added: ReadonlyMap<string, Bytes>, removed: readonly string[]): Promise<boolean>;
}

/** The most bytes that are kept. */
export const MOST_BYTES = 8 * 2 ** 20;

/** How long new kernels wait for others, in milliseconds, so that they are written together. */
const DELAY = 100;

/** The kernels of one build, as polygrad/engine/cache.py asks for them. */
export class KernelCache {
  readonly #storage: KernelStorage;
  readonly #build: string;
  readonly #entries: Map<string, Bytes>;
  readonly #used = new Set<string>();
  #added = new Map<string, Bytes>();
  #saving: Promise<void> | undefined;
  #refused = false;

  private constructor(storage: KernelStorage, build: string, entries: ReadonlyMap<string, Bytes>) {
    this.#storage = storage;
    this.#build = build;
    this.#entries = new Map(entries);
  }

  static async open(storage: KernelStorage, build: string): Promise<KernelCache> {
    return new KernelCache(storage, build, await storage.load(build));
  }

  /** The entry, if there is one. */
  find(key: string): Bytes | undefined {
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#used.add(key);
    return entry;
  }

  /** Keep an entry: bytes of Python's. */
  keep(key: string, entry: PyProxy): void {
    const bytes = Uint8Array.from(entry.toJs() as Uint8Array);
    this.#entries.set(key, bytes);
    this.#used.add(key);
    if (this.#refused) return;
    this.#added.set(key, bytes);
    this.#saving ??= this.#save();
  }

  /** Settles when all that was kept so far is stored, or cannot be. */
  async saved(): Promise<void> {
    await this.#saving;
  }

  async #save(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, DELAY));
    const removed = this.#makeRoom();
    const added = this.#added;
    this.#added = new Map();
    this.#saving = undefined;
    this.#refused = !(await this.#storage.save(this.#build, added, removed)) || this.#refused;
  }

  /** Forget what is too much, the unused first; the keys of what the database has of it. */
  #makeRoom(): string[] {
    let size = 0;
    for (const { length } of this.#entries.values()) size += length;
    const removed: string[] = [];
    const unused = [...this.#entries.keys()].filter((key) => !this.#used.has(key));
    for (const key of [...unused, ...this.#used]) {
      if (size <= MOST_BYTES) break;
      size -= this.#entries.get(key)?.length ?? 0;
      this.#entries.delete(key);
      if (!this.#added.delete(key)) removed.push(key);
    }
    return removed;
  }
}
