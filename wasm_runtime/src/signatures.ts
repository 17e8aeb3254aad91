/**
 * Signatures of exported files, `model.pgrd.minisig`, of which `polygrad/export/signing.py` says what they are. The trusted
 * comment has the first bytes of the file, and those the SHA-256 of its header, which has that of each part. So a file is
 * checked before it has arrived, with Ed25519 alone.
 */

import { SignatureError } from "./errors";
import { PREFIX } from "./parts";
import { joined, PieceReader } from "./pieces";

const UNTRUSTED = "untrusted comment: ";
const TRUSTED = "trusted comment: ";

/** Where the signature of an address is, before its query; undefined for sources that have no address. */
export function signaturePlace(source: unknown): string | undefined {
  if (typeof source !== "string" && !(source instanceof URL)) return undefined;
  const [address = ""] = /^[^?#]*/.exec(String(source)) ?? [];
  return `${address}.minisig${String(source).slice(address.length)}`;
}

/** `pieces`, whose first bytes have to be these, in hexadecimal. Throws SignatureError. */
export async function* signedPieces(
  pieces: AsyncIterable<Uint8Array>,
  head: string,
): AsyncGenerator<Uint8Array> {
  const reader = new PieceReader(pieces);
  try {
    const start = await reader.copy(PREFIX);
    if (hex(start) !== head) {
      throw new SignatureError("signature: expected the file that was signed, got another");
    }
    yield start;
    yield* reader.rest();
  } finally {
    await reader.close();
  }
}

/**
 * The first bytes of the file that was signed, in hexadecimal. Rejects with SignatureError unless the signature is by this
 * key, with RangeError for what is no key.
 */
export async function signedHead(file: Uint8Array, publicKey: string): Promise<string> {
  const key = decoded(publicKey.trim().split(/\s+/).at(-1));
  if (key.length !== 42 || ascii(key) !== "Ed") {
    throw new RangeError(
      `load: publicKey: expected one of minisign, RW..., got ${JSON.stringify(publicKey)}`,
    );
  }
  const [untrusted = "", first, comment = "", last] = new TextDecoder().decode(file).split(/\r?\n/);
  const signature = decoded(first);
  const overComment = decoded(last);
  const isWhole = signature.length === 74 && overComment.length === 64 && ascii(signature) === "ED";
  if (!isWhole || !untrusted.startsWith(UNTRUSTED) || !comment.startsWith(TRUSTED)) {
    throw new SignatureError("signature: expected four lines of minisign with a digest (ED), got others");
  }
  const [expected, got] = [nameOf(key), nameOf(signature)];
  if (expected !== got) {
    throw new SignatureError(`signature: expected key ${expected}, got a signature by key ${got}`);
  }
  const trusted = comment.slice(TRUSTED.length);
  const message = joined([signature.subarray(10), new TextEncoder().encode(trusted)]);
  if (!(await isSigned(message, overComment, key.slice(10)))) {
    throw new SignatureError(
      `signature: its trusted comment is not what key ${expected} signed: it was changed, or is another's`,
    );
  }
  const head = /(?:^|[\t ])head:([0-9a-f]{88})$/.exec(trusted)?.[1];
  if (head !== undefined) return head;
  throw new SignatureError(
    "signature: expected the head of the file in its trusted comment, got none: sign it with polygrad sign",
  );
}

async function isSigned(
  message: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  key: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  try {
    const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", imported, signature, message);
  } catch (cause) {
    throw new SignatureError(
      "signature: expected an engine with Ed25519, got none: use https, and Chrome 137, Firefox 129, Safari 17 or Node 20",
      { cause },
    );
  }
}

const hex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The letters that bytes begin with. */
const ascii = (bytes: Uint8Array): string => String.fromCharCode(...bytes.subarray(0, 2));

/** The number of a key, which follows the letters, as minisign shows it. */
const nameOf = (bytes: Uint8Array): string => hex(bytes.slice(2, 10).reverse()).toUpperCase();

/** Bytes of base64; none for another text, also for another way to write the same bytes. */
function decoded(text = ""): Uint8Array<ArrayBuffer> {
  try {
    const raw = atob(text);
    return Uint8Array.from(btoa(raw) === text ? raw : "", (letter) => letter.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
