/** Files that a session reads: their sources, and their bytes as they arrive. */

import type { FileCache, OpenOptions } from "../cache/file_cache";
import { once } from "../pieces";
import { collect, piecesOf, type OpenedFile, type ReadOptions } from "../source";
import { ArgumentError } from "./generated/errors";
import type { ParseCSV } from "./datasets/csv_records";
import type { Pixels } from "./make";
import type { Session } from "./session";
import type { DecodedSound } from "./sounds";

/** The source of a file: its bytes, or an address (in Node also a path). */
export type FileSource = ArrayBuffer | Uint8Array | Blob | URL | string;

/** A folder of the host. */
export interface Folder {
  /** The names of its files; none where there is no such folder. */
  list(): Promise<string[]>;
  /** The bytes of a file. */
  read(name: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Write a file, which is there whole or not at all, and make the folder. */
  write(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  remove(name: string): Promise<void>;
}

/** What the API needs of its host. */
export interface Host {
  /** Files at addresses that are kept. */
  readonly cache: FileCache;
  /** Open the file at an address or a path. `what`: the name of the calling function, for errors. */
  open(source: string | URL, what: string, options: OpenOptions): Promise<OpenedFile>;
  /** The pixels of an image, where the host can draw. */
  readonly pixels?: Session["pixels"];
  /** The pixels of a file of a picture, where the host can decode it. */
  readonly decodeImage?: (file: Blob) => Promise<Pixels>;
  /** The samples of a file of sound at a rate, where the host can decode it. */
  readonly decodeSound?: (file: ArrayBuffer, rate: number) => Promise<DecodedSound>;
  /** The parser of CSV, which is loaded when it is first needed. */
  readonly loadCSV?: () => Promise<ParseCSV>;
  /** A folder that lasts, by its path. Throws ArgumentError where there is none. */
  readonly folder?: (path: string) => Folder;
}

/** Open a file, wherever it is. */
export async function openSource(
  host: Host,
  source: FileSource,
  what: string,
  options: OpenOptions,
): Promise<OpenedFile> {
  if (typeof source === "string" || source instanceof URL) return host.open(source, what, options);
  return host.cache.verified(openBytes(source, what), what, nameOf(source), options);
}

function openBytes(source: ArrayBuffer | Uint8Array | Blob, what: string): OpenedFile {
  if (source instanceof Blob) return { pieces: piecesOf(source.stream()), length: source.size };
  if (source instanceof ArrayBuffer || source instanceof Uint8Array) {
    const bytes =
      source instanceof ArrayBuffer
        ? new Uint8Array(source)
        : new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
    return { pieces: once(bytes), length: source.byteLength };
  }
  throw new ArgumentError(`${what}: expected an address, a path, a File or bytes, got a ${typeof source}`);
}

/** All bytes of a file, in memory of their own. */
export async function readAll(
  host: Host,
  source: FileSource,
  what: string,
  options: ReadOptions & OpenOptions = {},
): Promise<Uint8Array<ArrayBuffer>> {
  return collect(await openSource(host, source, what, options), options);
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
