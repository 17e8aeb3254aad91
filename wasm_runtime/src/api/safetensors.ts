/**
 * Safetensors files that are read while they arrive. Each tensor is passed on as soon as its bytes are there, so the
 * whole of a large file is never in Python's memory at once.
 */

import type { PieceReader } from "../pieces";
import { headerLength, parseHeader, PREFIX, type Place } from "../safetensors";
import { ArgumentError } from "./generated/errors";

const MAX_HEADER = 100_000_000;

/** The next `count` bytes. Rejects with ArgumentError when there are fewer. */
async function take(reader: PieceReader, count: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await reader.copy(count);
  if (bytes.length === count) return bytes;
  throw new ArgumentError(
    `safetensors: expected ${count} more bytes, got ${bytes.length}: the file is cut short`,
  );
}

/** The tensors of a header in the order of the data. Rejects with ArgumentError for a damaged header. */
async function readHeader(reader: PieceReader): Promise<Place[]> {
  const length = headerLength(await take(reader, PREFIX));
  if (length > MAX_HEADER) {
    throw new ArgumentError(`safetensors: expected a header of at most ${MAX_HEADER} bytes, got ${length}`);
  }
  const places = parseHeader(await take(reader, length), ArgumentError);
  return places.sort((a, b) => a.start - b.start);
}

/** Every tensor of a file and its bytes, in the order of the data. */
export async function* readTensors(
  reader: PieceReader,
): AsyncGenerator<readonly [Place, Uint8Array<ArrayBuffer>]> {
  let at = 0;
  for (const place of await readHeader(reader)) {
    if (place.start < at) {
      throw new ArgumentError(
        `safetensors: ${place.name}: expected data of its own, got bytes of another tensor`,
      );
    }
    await take(reader, place.start - at);
    yield [place, await take(reader, place.end - place.start)];
    at = place.end;
  }
}

/** The file of each tensor, by the tensor's name, as an index says. Throws ArgumentError, which begins with `what`. */
export function parseIndex(bytes: Uint8Array, what: string): Readonly<Record<string, string>> {
  let index: unknown;
  try {
    index = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new ArgumentError(`${what}: expected an index of JSON, got ${String(error)}`);
  }
  const { weight_map: files } = (index ?? {}) as { weight_map?: unknown };
  if (typeof files !== "object" || files === null || Array.isArray(files)) {
    throw new ArgumentError(`${what}: expected an index with a weight_map, got one without`);
  }
  for (const [name, file] of Object.entries(files)) {
    if (typeof file !== "string" || !/^[^/\\:]+$/.test(file) || /^\.+$/.test(file)) {
      throw new ArgumentError(
        `${what}: ${name}: expected the name of a file beside the index, got ${String(file)}`,
      );
    }
  }
  return files as Readonly<Record<string, string>>;
}
