/**
 * Safetensors files that are read while they arrive. Each tensor is passed on as soon as its bytes are there, so the
 * whole of a large file is never in Python's memory at once.
 */

import { headerLength, parseHeader, PREFIX, type Place } from "../safetensors";
import { ArgumentError } from "./generated/errors";

const MAX_HEADER = 100_000_000;

/** Reads runs of known length from bytes that arrive in pieces. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #pieces: Uint8Array[] = [];
  #available = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Read what is left, which nobody needs. */
  async finish(): Promise<void> {
    while ((await this.#source.next()).done !== true);
  }

  /** The next `count` bytes. Rejects with ArgumentError when there are fewer. */
  async take(count: number): Promise<Uint8Array<ArrayBuffer>> {
    while (this.#available < count) {
      const next = await this.#source.next();
      if (next.done === true) {
        throw new ArgumentError(
          `safetensors: expected ${count} more bytes, got ${this.#available}: the file is cut short`,
        );
      }
      const piece = next.value;
      this.#pieces.push(piece);
      this.#available += piece.length;
    }
    const out = new Uint8Array(count);
    let at = 0;
    while (at < count) {
      const piece = this.#pieces[0];
      if (piece === undefined) break;
      const part = piece.subarray(0, count - at);
      out.set(part, at);
      at += part.length;
      if (part.length === piece.length) this.#pieces.shift();
      else this.#pieces[0] = piece.subarray(part.length);
    }
    this.#available -= count;
    return out;
  }
}

/** The tensors of a header in the order of the data. Rejects with ArgumentError for a damaged header. */
async function readHeader(reader: ByteReader): Promise<Place[]> {
  const length = headerLength(await reader.take(PREFIX));
  if (length > MAX_HEADER) {
    throw new ArgumentError(`safetensors: expected a header of at most ${MAX_HEADER} bytes, got ${length}`);
  }
  const places = parseHeader(await reader.take(length), ArgumentError);
  return places.sort((a, b) => a.start - b.start);
}

/** Every tensor of a file and its bytes, in the order of the data. */
export async function* readTensors(
  reader: ByteReader,
): AsyncGenerator<readonly [Place, Uint8Array<ArrayBuffer>]> {
  let at = 0;
  for (const place of await readHeader(reader)) {
    if (place.start < at) {
      throw new ArgumentError(
        `safetensors: ${place.name}: expected data of its own, got bytes of another tensor`,
      );
    }
    await reader.take(place.start - at);
    yield [place, await reader.take(place.end - place.start)];
    at = place.end;
  }
}
