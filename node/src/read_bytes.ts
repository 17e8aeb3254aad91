/** Reads a file as a plain Uint8Array, as a page does. */

import { readFile } from "node:fs/promises";

export async function readBytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
  const { buffer, byteOffset, length } = await readFile(path);
  return new Uint8Array(buffer, byteOffset, length);
}
