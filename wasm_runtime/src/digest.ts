/** SHA-256 of whole messages; `Sha256` takes pieces. */

import { Sha256 } from "./cache/sha256";

/** The SHA-256 of bytes in hexadecimal. A page that is no secure context has no `crypto.subtle`. */
export async function digestOf(bytes: Uint8Array): Promise<string> {
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- see above
  if (globalThis.crypto?.subtle === undefined || !(bytes.buffer instanceof ArrayBuffer)) {
    const hash = new Sha256();
    hash.update(bytes);
    return hash.digest();
  }
  const digest = await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
