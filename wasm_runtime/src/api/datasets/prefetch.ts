/** `Prefetch`: items of an asynchronous source, read ahead. */

export class Prefetch<T> {
  readonly #ready: T[] = [];
  readonly #depth: number;
  #error: { readonly reason: unknown } | undefined;
  #hasEnded = false;
  #isClosed = false;
  #wakeReader: (() => void) | undefined;
  #wakeSource: (() => void) | undefined;

  /** Reading begins now, and keeps `depth` items ahead. */
  constructor(source: AsyncIterable<T>, depth: number) {
    this.#depth = depth;
    void this.#read(source);
  }

  /** The next item; undefined after the last one. Rejects with the source's error once the items before are taken. */
  async next(): Promise<T | undefined> {
    while (this.#ready.length === 0) {
      if (this.#error !== undefined) throw this.#error.reason;
      if (this.#hasEnded) return undefined;
      await new Promise<void>((resolve) => (this.#wakeReader = resolve));
    }
    return this.takeReady();
  }

  /** The next item if it is there. */
  takeReady(): T | undefined {
    const item = this.#ready.shift();
    this.#wakeSource?.();
    return item;
  }

  /** Stop reading, and close the source. One that is waiting for an item closes after that. */
  close(): void {
    this.#isClosed = true;
    this.#wakeSource?.();
  }

  /** Waits for room for an item; false once nothing more is wanted. */
  async #hasRoom(): Promise<boolean> {
    while (this.#ready.length >= this.#depth && !this.#isClosed) {
      await new Promise<void>((resolve) => (this.#wakeSource = resolve));
    }
    return !this.#isClosed;
  }

  async #read(source: AsyncIterable<T>): Promise<void> {
    try {
      for await (const item of source) {
        this.#ready.push(item);
        this.#wakeReader?.();
        if (!(await this.#hasRoom())) break;
      }
    } catch (reason) {
      this.#error = { reason };
    }
    this.#hasEnded = true;
    this.#wakeReader?.();
  }
}
