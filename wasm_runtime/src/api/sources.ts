/** Files that a session reads: their sources, and their bytes as they arrive. */

import { ArgumentError } from "./generated/errors";
import type { Session } from "./session";

/** Reports how much of a file has arrived, in bytes. `total` is undefined where the server does not send it. */
export type ByteProgress = (loaded: number, total: number | undefined) => void;

/** The source of a file: its bytes, or an address (in Node also a path). */
export type FileSource = ArrayBuffer | Uint8Array | Blob | URL | string;

/** A file that arrives in pieces, and its length if that is known. */
export interface OpenedFile {
  readonly pieces: AsyncIterable<Uint8Array>;
  readonly length?: number;
}

/** What the API needs of its host. */
export interface Host {
  /** Open a file. `what`: the name of the calling function, for errors. */
  open(source: string | URL, what: string): Promise<OpenedFile>;
  /** The pixels of an image, where the host can draw. */
  readonly pixels?: Session["pixels"];
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}

async function* piecesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    yield value;
  }
}

/** The pieces that `fetch` brings. Rejects with ArgumentError when there is no such file. */
export async function openUrl(url: string | URL, what: string): Promise<OpenedFile> {
  const response = await fetch(url);
  if (!response.ok || response.body === null) {
    throw new ArgumentError(`${what}: expected a file at ${String(url)}, got status ${response.status}`);
  }
  const length = response.headers.get("Content-Encoding") === null && response.headers.get("Content-Length");
  return { pieces: piecesOf(response.body), ...(length && { length: Number(length) }) };
}

export async function openSource(host: Host, source: FileSource, what: string): Promise<OpenedFile> {
  if (typeof source === "string" || source instanceof URL) return host.open(source, what);
  if (source instanceof Blob) return { pieces: piecesOf(source.stream()), length: source.size };
  if (source instanceof ArrayBuffer || source instanceof Uint8Array) {
    return { pieces: once(new Uint8Array(source as ArrayBuffer)), length: source.byteLength };
  }
  throw new ArgumentError(`${what}: expected an address, a path, a File or bytes, got a ${typeof source}`);
}

/** All bytes of a file, in memory of their own. */
export async function readAll(
  host: Host,
  source: FileSource,
  what: string,
  onProgress?: ByteProgress,
): Promise<Uint8Array<ArrayBuffer>> {
  const { pieces, length } = await openSource(host, source, what);
  const received: Uint8Array[] = [];
  let loaded = 0;
  for await (const piece of pieces) {
    received.push(piece);
    loaded += piece.byteLength;
    onProgress?.(loaded, length);
  }
  const whole = new Uint8Array(loaded);
  let offset = 0;
  for (const piece of received) {
    whole.set(piece, offset);
    offset += piece.byteLength;
  }
  return whole;
}

/** The name of a file, for errors. */
export function nameOf(source: FileSource): string {
  if (typeof source === "string" || source instanceof URL) return String(source);
  return "name" in source && typeof source.name === "string" ? source.name : "model";
}

/** The file `name` in the folder of `source`; undefined where the folder is not known. */
export function beside(source: FileSource, name: string): URL | string | undefined {
  if (source instanceof URL) return new URL(name, source);
  if (typeof source !== "string") return undefined;
  return /^[a-z]+:\/\//i.test(source) ? new URL(name, source) : source.replace(/[^/\\]*$/, "") + name;
}
