/** Opens a file, which is read in pieces. */

import { open } from "node:fs/promises";

import type { OpenedFile } from "../../wasm_runtime/src/source";

const PIECE = 4 << 20; // bytes

export async function openFile(path: string): Promise<OpenedFile> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    return { pieces: pieces(), length: size };
  } catch (error) {
    await file.close();
    throw error;
  }

  async function* pieces(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const { buffer, bytesRead } = await file.read(new Uint8Array(PIECE), 0, PIECE);
        if (bytesRead === 0) return;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  }
}
