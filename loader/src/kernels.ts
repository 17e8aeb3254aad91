/**
 * Compiled kernels that are kept from one visit to the next. Python requests them while it computes and cannot wait. So
 * all are read at the start, and new ones are written when this thread is idle. Each has a checksum of Python's: a
 * damaged kernel is compiled again.
 */

import type { PyProxy } from "./pyodide_types";

type Bytes = Uint8Array<ArrayBuffer>;

/** A database for kernels. It reports no failures, because a lost kernel costs only time. */
export interface KernelStorage {
  /** The kernels of this build of polygrad, by key; none when they cannot be read. */
  load(build: string): Promise<ReadonlyMap<string, Bytes>>;
  /** Add and remove kernels, and remove those of all other builds, in one transaction; whether it succeeded. */
  save(build: string, added: ReadonlyMap<string, Bytes>, removed: readonly string[]): Promise<boolean>;
}

/** The most bytes that are kept. */
export const MAX_BYTES = 8 * 2 ** 20;

/** How long new kernels wait for others, in milliseconds, so that they are written together. */
const DELAY = 100;

/** The kernels of one build, for polygrad/engine/cache.py. */
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

  /** Store an entry, which is Python's bytes. */
  keep(key: string, entry: PyProxy): void {
    const bytes = Uint8Array.from(entry.toJs() as Uint8Array);
    this.#entries.set(key, bytes);
    this.#used.add(key);
    if (this.#refused) return;
    this.#added.set(key, bytes);
    this.#saving ??= this.#save();
  }

  /** Settles when all entries so far are written, or cannot be. */
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

  /** Remove entries beyond `MAX_BYTES`, unused ones first; the keys of those that the database has. */
  #makeRoom(): string[] {
    let size = 0;
    for (const { length } of this.#entries.values()) size += length;
    const removed: string[] = [];
    const unused = [...this.#entries.keys()].filter((key) => !this.#used.has(key));
    for (const key of [...unused, ...this.#used]) {
      if (size <= MAX_BYTES) break;
      size -= this.#entries.get(key)?.length ?? 0;
      this.#entries.delete(key);
      if (!this.#added.delete(key)) removed.push(key);
    }
    return removed;
  }
}
