/**
 * What exported files have in common: a header, and the parts that follow it, with a SHA-256 of everything.
 * `polygrad/runtime/parts.py` describes them. No byte leaves here before its digest was checked.
 */

import { digestOf } from "./digest";
import { ProgramError } from "./errors";
import { MAX_BYTES, MAX_HEADER } from "./limits";
import type { PieceReader } from "./pieces";
import { parseJson } from "./strict_json";

/** The bytes before the header. */
export const PREFIX = 44;
const BLOCK = 4_194_304;

/** What a header says of a part: its length, and the SHA-256 in hexadecimal of each block of it. */
export interface Part {
  readonly bytes: number;
  readonly sha256: readonly string[];
}

/** Whether this describes a part. A header may give it the fields `more` too. */
export function isPart(x: unknown, ...more: string[]): x is Part {
  const part = (x ?? {}) as Partial<Part>;
  const { bytes, sha256 } = part;
  return (
    Object.keys(part).sort().join() === ["bytes", "sha256", ...more].sort().join() &&
    isBytes(bytes) &&
    Array.isArray(sha256) &&
    sha256.length === Math.ceil(bytes / BLOCK) &&
    sha256.every((digest) => typeof digest === "string" && /^[0-9a-f]{64}$/.test(digest))
  );
}

/** Whether this is a number of bytes that a file may speak of. */
export const isBytes = (n: unknown): n is number =>
  Number.isSafeInteger(n) && (n as number) >= 0 && (n as number) <= MAX_BYTES;

/** Whether a file that begins with these bytes is one of this kind. */
export function hasMagic(prefix: Uint8Array, magic: string): boolean {
  return String.fromCharCode(...prefix.subarray(0, 4)) === magic;
}

/** A kind of file. `versions`: those that are read, the newest first. */
export interface Format {
  readonly what: string;
  readonly magic: string;
  readonly versions: readonly number[];
}

/**
 * The header of a file whose first `PREFIX` bytes are known. Rejects with ProgramError; `check`, which is given the version,
 * too, throws for a wrong header.
 */
export async function readHeader<Header>(
  prefix: Uint8Array,
  reader: PieceReader,
  { what, magic, versions }: Format,
  check: (header: Header, version: number) => void,
): Promise<Header> {
  if (!hasMagic(prefix, magic)) {
    const got = String.fromCharCode(...prefix.subarray(0, 4));
    throw new ProgramError(`${what}: expected bytes starting ${magic}, got ${JSON.stringify(got)}`);
  }
  if (prefix.length < PREFIX) {
    throw new ProgramError(
      `${what}: expected ${PREFIX} bytes or more, got ${prefix.length}: the file is damaged`,
    );
  }
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.byteLength);
  const got = view.getUint32(4, true);
  if (!versions.includes(got)) {
    const advice = got < (versions[0] ?? 0) ? "export it again" : "use a newer polygrad";
    throw new ProgramError(`${what}: expected version ${versions.join(" or ")}, got ${got}: ${advice}`);
  }
  const length = view.getUint32(8, true);
  const bytes = await reader.take(Math.min(length, MAX_HEADER));
  try {
    if (bytes.length < length) {
      throw new RangeError(`${length} bytes, ${bytes.length} are there, ${MAX_HEADER} are allowed`);
    }
    const digest = Array.from(prefix.subarray(12), (byte) => byte.toString(16).padStart(2, "0")).join("");
    if ((await digestOf(bytes)) !== digest) throw new TypeError("it has another SHA-256");
    const header = parseJson(bytes) as Header;
    check(header, got);
    return header;
  } catch (cause) {
    throw new ProgramError(`${what}: expected a whole header, got damaged bytes (${String(cause)})`, {
      cause,
    });
  }
}

/** The parts that come next, in memory. Rejects with ProgramError for damaged ones. `names`: for errors. */
export async function takeParts(
  reader: PieceReader,
  parts: readonly Part[],
  names: readonly string[],
): Promise<Uint8Array[]> {
  const taken: Uint8Array[] = [];
  for (const [i, { bytes }] of parts.entries()) taken.push(await takeAll(reader, bytes, names[i]));
  await Promise.all(
    taken.flatMap((part, i) =>
      (parts[i]?.sha256 ?? []).map((digest, block) =>
        checkBlock(part.subarray(block * BLOCK, (block + 1) * BLOCK), digest, names[i]),
      ),
    ),
  );
  return taken;
}

/** The blocks of a part that comes next, checked one by one as they arrive. */
export async function* checkedBlocks(
  reader: PieceReader,
  { bytes, sha256 }: Part,
  name: string,
): AsyncGenerator<Uint8Array> {
  let left = bytes;
  for (const digest of sha256) {
    const block = await takeAll(reader, Math.min(BLOCK, left), name);
    await checkBlock(block, digest, name);
    left -= block.length;
    yield block;
  }
}

async function takeAll(reader: PieceReader, count: number, name = ""): Promise<Uint8Array> {
  const bytes = count === 0 ? new Uint8Array() : await reader.take(count);
  if (bytes.length === count) return bytes;
  throw new ProgramError(`${name}: expected ${count} bytes, got ${bytes.length}: the file is damaged`);
}

async function checkBlock(block: Uint8Array, digest: string, name = ""): Promise<void> {
  const got = await digestOf(block);
  if (got === digest) return;
  throw new ProgramError(
    `${name}: expected bytes of SHA-256 ${digest.slice(0, 16)}…, got ${got.slice(0, 16)}…: the file is damaged`,
  );
}
