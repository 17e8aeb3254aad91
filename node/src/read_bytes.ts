/** A file's bytes, as the plain typed array that both hosts have. */

import { readFile } from "node:fs/promises";

export async function readBytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
  const { buffer, byteOffset, length } = await readFile(path);
  return new Uint8Array(buffer, byteOffset, length);
}
