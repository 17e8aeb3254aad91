/**
 * Limits of a download: how many bytes arrive, and in what time. Those of polygrad/tensor/core/downloads.py. Where a model has
 * several files, they share the limits.
 */

import { FetchError } from "./errors";
import type { OpenedFile } from "./source";

/** How much of a server's answer is waited for. */
export interface DownloadLimits {
  /** The most bytes of a file, or of all files of a model: 64 GiB unless given. */
  readonly maxBytes?: number | undefined;
  /** Seconds for the whole file, or for all files of a model. A server that says nothing for 30 is given up in any case. */
  readonly timeout?: number | undefined;
}

const MAX_BYTES = 64 * 2 ** 30;

/** Seconds without a byte from the server. */
const SILENCE = 30;

/** What the files of one model may take together. */
export class DownloadBudget {
  readonly maxBytes: number;
  readonly timeout: number | undefined;
  readonly #started = performance.now();
  /** The bytes of each file, by its address: a file may be read twice. */
  readonly #sizes = new Map<string, number>();

  /** Throws RangeError for limits that are none. */
  constructor(what: string, { maxBytes = MAX_BYTES, timeout }: DownloadLimits) {
    for (const [name, value] of Object.entries({ maxBytes, timeout })) {
      if (value === undefined || value > 0) continue;
      throw new RangeError(`${what}: ${name}: expected a positive number, got ${String(value)}`);
    }
    [this.maxBytes, this.timeout] = [maxBytes, timeout];
  }

  /** Seconds since the first file. */
  get passed(): number {
    return (performance.now() - this.#started) / 1000;
  }

  /** Note that the file at `url` has at least `size` bytes; the bytes of all files. */
  note(url: string, size: number): number {
    this.#sizes.set(url, Math.max(size, this.#sizes.get(url) ?? 0));
    return [...this.#sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  }
}

/** A download within its limits. Whoever opens it hands it `signal`. */
export class LimitedDownload {
  readonly #controller = new AbortController();
  readonly #name: string;
  readonly #url: string;
  readonly #budget: DownloadBudget;
  #received = 0;

  constructor(url: string, what: string, budget: DownloadBudget) {
    [this.#name, this.#url, this.#budget] = [`${what}: ${url}`, url, budget];
  }

  /** Ends the download: when `outer` does, or the time is over. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Open a file, and read it, within the limits. `outer`: the signal of the user. */
  async open(open: () => Promise<OpenedFile>, outer: AbortSignal | undefined): Promise<OpenedFile> {
    const file = await this.#wait(open, outer);
    const { maxBytes } = this.#budget;
    const total = this.#budget.note(this.#url, file.length ?? 0);
    if (total > maxBytes) {
      this.#controller.abort();
      throw this.#error(`expected at most maxBytes, ${maxBytes} bytes, got ${total}`);
    }
    return {
      pieces: this.#pieces(file, outer),
      length: file.length,
      type: file.type,
      get cached() {
        return file.cached; // it changes while the file is read
      },
    };
  }

  async *#pieces(file: OpenedFile, outer: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    const pieces = file.pieces[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, undefined>;
    try {
      for (;;) {
        const { value: piece, done } = await this.#wait(() => pieces.next(), outer);
        if (done) return;
        this.#received += piece.byteLength;
        const { maxBytes } = this.#budget;
        if (this.#budget.note(this.#url, this.#received) > maxBytes) {
          throw this.#error(`more than maxBytes, ${maxBytes} bytes, arrived`);
        }
        yield piece;
      }
    } finally {
      await pieces.return?.();
    }
  }

  /** Wait for the server. Where the reader takes long, that is not the server's time. */
  async #wait<T>(work: () => Promise<T>, outer: AbortSignal | undefined): Promise<T> {
    outer?.throwIfAborted();
    const abort = (): void => {
      this.#controller.abort(outer?.reason);
    };
    const { timeout = Infinity, passed } = this.#budget;
    const left = Math.min(SILENCE, timeout - passed);
    const timer = setTimeout(
      () => {
        this.#controller.abort(this.#error(this.#lateness()));
      },
      1000 * Math.max(0, left),
    );
    outer?.addEventListener("abort", abort);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
      outer?.removeEventListener("abort", abort);
    }
  }

  #lateness(): string {
    const { timeout, passed } = this.#budget;
    const isOver = timeout !== undefined && passed >= 0.99 * timeout;
    if (!isOver) return `the server has said nothing for ${SILENCE} s`;
    return `${this.#received} bytes arrived in ${timeout} s, and the file is not whole`;
  }

  #error(message: string): FetchError {
    return new FetchError(`${this.#name}: ${message}`, { url: this.#url });
  }
}
