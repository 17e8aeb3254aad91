/** Where an exported model comes from: bytes, or a response that arrives in pieces. */

import { ProgramError } from "./errors";

/** How much of a file has arrived, in bytes. `total` is undefined where the server does not send it. */
export interface LoadProgress {
  readonly loaded: number;
  readonly total: number | undefined;
}

/** What `load` takes on every host. */
export interface ModelOptions {
  /**
   * The most threads that run a model which was exported on a host with threads. The default is the number of
   * processors, but at least 2 and at most 8. In a page threads need cross-origin isolation; without it there is one.
   */
  threads?: number;
  onProgress?: (progress: LoadProgress) => void;
}

/** Bytes, or a response with them. */
export type ByteSource = ArrayBuffer | Uint8Array | Response;

/** All bytes of `source`. Rejects with ProgramError for a response with an error status. */
export async function bytesOf(
  source: ByteSource,
  onProgress?: (progress: LoadProgress) => void,
): Promise<Uint8Array> {
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (!source.ok) {
    throw new ProgramError(`load: expected a file at ${source.url}, got status ${source.status}`);
  }
  if (onProgress === undefined || source.body === null) return new Uint8Array(await source.arrayBuffer());
  return collect(source.body, lengthOf(source), onProgress);
}

/** The length that the server sends; undefined for a compressed response, whose length is another. */
function lengthOf({ headers }: Response): number | undefined {
  const length = headers.get("content-length");
  return length === null || headers.has("content-encoding") ? undefined : Number(length);
}

async function collect(
  stream: ReadableStream<Uint8Array>,
  total: number | undefined,
  onProgress: (progress: LoadProgress) => void,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  const reader = stream.getReader();
  let loaded = 0;
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    pieces.push(piece.value);
    loaded += piece.value.length;
    onProgress({ loaded, total });
  }
  const out = new Uint8Array(loaded);
  let offset = 0;
  for (const piece of pieces) {
    out.set(piece, offset);
    offset += piece.length;
  }
  return out;
}
