/** `PieceReader`: takes the bytes of a file that arrives in pieces, in order. */

import { ProgramError } from "./errors";

export class PieceReader {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  /** Bytes that are there already are not copied. */
  constructor(source: Uint8Array | AsyncIterable<Uint8Array>) {
    this.#pieces = (source instanceof Uint8Array ? once(source) : source)[Symbol.asyncIterator]();
  }

  /** The next `count` bytes; fewer where the file ends. */
  async take(count: number): Promise<Uint8Array> {
    if (this.#rest.length === 0) await this.#fetch();
    return this.#rest.length >= count ? this.#cut(count) : this.copy(count);
  }

  /** The next `count` bytes in memory of their own; fewer where the file ends. */
  async copy(count: number): Promise<Uint8Array<ArrayBuffer>> {
    // There is memory for what arrived, not for what a damaged file says.
    const pieces: Uint8Array[] = [];
    let length = 0;
    while (length < count && (this.#rest.length > 0 || (await this.#fetch()))) {
      const piece = this.#cut(count - length);
      pieces.push(piece);
      length += piece.length;
    }
    return joined(pieces);
  }

  /**
   * The next `count` bytes in pieces as they arrive. The lengths of all but the last are multiples of `multiple`. Throws
   * ProgramError where the file ends before.
   */
  async *stream(count: number, multiple: number): AsyncGenerator<Uint8Array> {
    let left = count;
    while (left > 0) {
      const there = Math.min(this.#rest.length, left);
      const usable = there === left ? there : there - (there % multiple);
      if (usable > 0) {
        left -= usable;
        yield this.#cut(usable);
      } else {
        // A few bytes wait for those that complete them.
        const piece = await this.take(Math.min(multiple, left));
        if (piece.length < Math.min(multiple, left)) {
          throw new ProgramError(
            `file: expected ${left} bytes more, got ${piece.length}: the file is damaged`,
          );
        }
        left -= piece.length;
        yield piece;
      }
    }
  }

  /** All that comes, as it arrives. */
  async *rest(): AsyncGenerator<Uint8Array> {
    while (this.#rest.length > 0 || (await this.#fetch())) yield this.#cut(this.#rest.length);
  }

  /** Throws ProgramError unless the file ends here. */
  async end(): Promise<void> {
    if (this.#rest.length > 0 || (await this.#fetch())) {
      throw new ProgramError("file: expected its end, got more bytes: the file is damaged");
    }
  }

  /** Nothing more is read: a download ends. */
  async close(): Promise<void> {
    await this.#pieces.return?.();
  }

  #cut(count: number): Uint8Array {
    const piece = this.#rest.subarray(0, count);
    this.#rest = this.#rest.subarray(count);
    return piece;
  }

  /** Whether there was another piece. */
  async #fetch(): Promise<boolean> {
    for (;;) {
      const next = await this.#pieces.next();
      if (next.done === true) return false;
      if (next.value.length > 0) {
        this.#rest = next.value;
        return true;
      }
    }
  }
}

/** The bytes of all pieces, in memory of their own. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const piece of pieces) {
    whole.set(piece, offset);
    offset += piece.length;
  }
  return whole;
}

/** One piece. */
export async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}
