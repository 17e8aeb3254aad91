/** Limits of a download: how many bytes arrive, and in what time. Those of polygrad/tensor/core/downloads.py. */

import { FetchError } from "./errors";
import type { OpenedFile } from "./source";

/** How much of a server's answer is waited for. */
export interface DownloadLimits {
  /** The most bytes of a file: 64 GiB unless given. */
  readonly maxBytes?: number | undefined;
  /** Seconds for the whole file. A server that says nothing for 30 is given up in any case. */
  readonly timeout?: number | undefined;
}

const MAX_BYTES = 64 * 2 ** 30;

/** Seconds without a byte from the server. */
const SILENCE = 30;

/** A download within its limits. Whoever opens it hands it `signal`. */
export class LimitedDownload {
  readonly #controller = new AbortController();
  readonly #name: string;
  readonly #url: string;
  readonly #maxBytes: number;
  readonly #timeout: number | undefined;
  readonly #started = performance.now();
  #received = 0;

  /** Throws RangeError for limits that are none. */
  constructor(url: string, what: string, { maxBytes = MAX_BYTES, timeout }: DownloadLimits) {
    for (const [name, value] of Object.entries({ maxBytes, timeout })) {
      if (value === undefined || value > 0) continue;
      throw new RangeError(`${what}: ${name}: expected a positive number, got ${String(value)}`);
    }
    [this.#name, this.#url, this.#maxBytes, this.#timeout] = [`${what}: ${url}`, url, maxBytes, timeout];
  }

  /** Ends the download: when `outer` does, or the time is over. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Open a file, and read it, within the limits. `outer`: the signal of the user. */
  async open(open: () => Promise<OpenedFile>, outer: AbortSignal | undefined): Promise<OpenedFile> {
    const file = await this.#wait(open, outer);
    if (file.length !== undefined && file.length > this.#maxBytes) {
      this.#controller.abort();
      throw this.#error(`expected at most maxBytes, ${this.#maxBytes} bytes, got ${file.length}`);
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
        if (this.#received > this.#maxBytes) {
          throw this.#error(`more than maxBytes, ${this.#maxBytes} bytes, arrived`);
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
    const passed = (performance.now() - this.#started) / 1000;
    const left = this.#timeout === undefined ? SILENCE : Math.min(SILENCE, this.#timeout - passed);
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
    const passed = (performance.now() - this.#started) / 1000;
    const isOver = this.#timeout !== undefined && passed >= 0.99 * this.#timeout;
    if (!isOver) return `the server has said nothing for ${SILENCE} s`;
    return `${this.#received} bytes arrived in ${this.#timeout} s, and the file is not whole`;
  }

  #error(message: string): FetchError {
    return new FetchError(`${this.#name}: ${message}`, { url: this.#url });
  }
}
