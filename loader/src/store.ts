/** Bytes kept from one start to the next, and never trusted: what was damaged is as good as lost. */

/** A host's store. Losing entries costs only time, so `set` may fail in silence. */
export interface ByteStore {
  get(key: string): Promise<Uint8Array<ArrayBuffer> | undefined>;
  set(key: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
}

const DIGEST_BYTES = 32;

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** The SHA-256 of `bytes` in hexadecimal. */
export async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return Array.from(await sha256(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Keep `bytes` under `key`, behind their digest. */
export async function remember(store: ByteStore, key: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const entry = new Uint8Array(DIGEST_BYTES + bytes.length);
  entry.set(await sha256(bytes));
  entry.set(bytes, DIGEST_BYTES);
  await store.set(key, entry);
}

/** What was kept under `key`, or undefined when it is not there or not whole. */
export async function recall(store: ByteStore, key: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const entry = await store.get(key);
  if (entry === undefined || entry.length < DIGEST_BYTES) return undefined;
  const bytes = entry.slice(DIGEST_BYTES);
  const expected = await sha256(bytes);
  return expected.every((byte, i) => byte === entry[i]) ? bytes : undefined;
}
