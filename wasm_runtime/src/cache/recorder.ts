/** Stores a file in blocks while it is read. A write that fails ends the recording, and never the reading. */

import { BLOCK, type Entries, type Entry } from "./entries";
import { saysFull } from "./store";

export class Recorder {
  readonly #entries: Entries;
  readonly #limit: number;
  /** What is stored so far. */
  #entry: Entry;
  #buffer: Uint8Array<ArrayBuffer> | undefined;
  #filled = 0;
  /** The write in progress: there is one at most, so that a slow store slows the reading down. */
  #writing: Promise<void> = Promise.resolve();
  #isOff = false;

  /** `entry`: what is stored of the file; its rest is added. */
  constructor(entries: Entries, entry: Entry, limit: number) {
    this.#entries = entries;
    this.#entry = entry;
    this.#limit = limit;
    // A file that does not fit would only displace the others.
    this.#isOff = (entry.length ?? 0) > limit;
  }

  /** Add bytes, which are copied. Never rejects. */
  async add(piece: Uint8Array): Promise<void> {
    for (let at = 0; at < piece.length && !this.#isOff;) {
      this.#buffer ??= new Uint8Array(Math.min(BLOCK, this.#missing() ?? BLOCK));
      const part = piece.subarray(at, at + this.#buffer.length - this.#filled);
      this.#buffer.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
      if (this.#filled === this.#buffer.length) await this.#flush();
    }
  }

  /** The file ends here, and is whole. `sha256`: its digest, if it was checked. Never rejects. */
  async finish(sha256: string | undefined): Promise<void> {
    await this.#settle();
    if (this.#isOff) return;
    this.#entry = { ...this.#entry, length: this.#entry.bytes, whole: true, sha256 };
    await this.#attempt(async () => {
      await this.#entries.save(this.#entry);
      await this.#entries.touch(this.#entry.url);
      await this.#entries.sweep(this.#entry);
    });
    this.#isOff = true;
  }

  /** Nothing more arrives. What is there stays for a later download, if that can go on from there. Never rejects. */
  async stop(): Promise<void> {
    await this.#settle();
    if (!this.#isOff && this.#entry.strong === undefined) await this.#giveUp();
    this.#isOff = true;
  }

  /** What was stored is not the file. Never rejects. */
  async discard(): Promise<void> {
    this.#isOff = true;
    await this.#writing;
    await this.#giveUp();
  }

  /** Store what has arrived. */
  async #settle(): Promise<void> {
    if (this.#filled > 0 && !this.#isOff) await this.#flush();
    await this.#writing;
  }

  /** How many bytes are not stored, where the length is known; at least 1. */
  #missing(): number | undefined {
    const { length, bytes } = this.#entry;
    return length === undefined || length <= bytes ? undefined : length - bytes;
  }

  async #flush(): Promise<void> {
    const block = this.#buffer?.subarray(0, this.#filled);
    [this.#buffer, this.#filled] = [undefined, 0];
    await this.#writing;
    if (block !== undefined && !this.#isOff) this.#writing = this.#attempt(() => this.#write(block));
  }

  async #write(block: Uint8Array<ArrayBuffer>): Promise<void> {
    const [entries, { url }] = [this.#entries, this.#entry];
    const needed = Math.max(block.length, this.#missing() ?? 0);
    if (!(await entries.makeRoom(url, needed, this.#limit))) {
      await this.#giveUp();
      return;
    }
    if (this.#entry.bytes === 0) {
      await entries.save(this.#entry); // so that the folder is known to be in use
      await entries.touch(url);
    }
    const digest = await entries.addBlock(url, block);
    const { blocks, bytes } = this.#entry;
    this.#entry = { ...this.#entry, blocks: [...blocks, digest], bytes: bytes + block.length };
    await entries.save(this.#entry);
  }

  /** Write. Where there is no room, other files are removed first, and this one if that is not enough. */
  async #attempt(write: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        await write();
        return;
      } catch (error) {
        if (saysFull(error) && (await this.#removeOldest())) continue;
        if (saysFull(error)) await this.#giveUp();
        this.#isOff = true; // another writer may be at work in the same folder
        return;
      }
    }
  }

  async #removeOldest(): Promise<boolean> {
    return this.#entries.removeOldest(this.#entry.url).catch(() => false);
  }

  /** End the recording, and remove what it has stored: it would take room for nothing. */
  async #giveUp(): Promise<void> {
    this.#isOff = true;
    await this.#entries.remove(this.#entry.url).catch(() => false);
  }
}
