/** Bytes kept from one start to the next, and never trusted: what was damaged is as good as lost. */

type Bytes = Uint8Array<ArrayBuffer>;

/** Bytes that a store has, to be read when they are wanted. */
export interface Entry {
  readonly length: number;
  /** Rejects when they are gone. */
  read(): Promise<Bytes>;
}

/**
 * A host's store. Keys are `kind-rest`; the host keeps a few entries of each kind, the newest. Losing entries costs
 * only time, so `set` may fail in silence.
 */
export interface ByteStore {
  find(key: string): Promise<Entry | undefined>;
  set(key: string, bytes: Bytes): Promise<void>;
}

/** The kind of the entries that `key` displaces when there are too many. */
export function kindOf(key: string): string {
  return key.slice(0, key.indexOf("-") + 1);
}

const DIGEST_BYTES = 32;

async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** The SHA-256 of `bytes` in hexadecimal. */
export async function digest(bytes: Bytes): Promise<string> {
  return Array.from(await sha256(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Keep `bytes` under `key`, behind their digest. */
export async function remember(store: ByteStore, key: string, bytes: Bytes): Promise<void> {
  const entry = new Uint8Array(DIGEST_BYTES + bytes.length);
  entry.set(await sha256(bytes));
  entry.set(bytes, DIGEST_BYTES);
  await store.set(key, entry);
}

/** What was kept under a key, before it is known whether it is whole. */
export interface Recalled {
  readonly length: number;
  readonly bytes: Promise<Bytes>;
  /** Whether it is. Nothing may come of the bytes before this says so. */
  readonly whole: Promise<boolean>;
}

/** As `recall`, but reading and checking go on while the caller prepares to use the bytes. */
export async function recallUnchecked(store: ByteStore, key: string): Promise<Recalled | undefined> {
  const entry = await store.find(key);
  if (entry === undefined || entry.length < DIGEST_BYTES) return undefined;
  const all = entry.read();
  const bytes = all.then((read) => read.subarray(DIGEST_BYTES));
  const check = async (): Promise<boolean> => {
    const [digest, actual] = [(await all).subarray(0, DIGEST_BYTES), await sha256(await bytes)];
    return digest.length === DIGEST_BYTES && digest.every((byte, i) => byte === actual[i]);
  };
  bytes.catch(() => undefined); // `whole` tells
  return { length: entry.length - DIGEST_BYTES, bytes, whole: check().catch(() => false) };
}

/** What was kept under `key`, or undefined when it is not there or not whole. */
export async function recall(store: ByteStore, key: string): Promise<Bytes | undefined> {
  const found = await recallUnchecked(store, key);
  return found !== undefined && (await found.whole) ? await found.bytes : undefined;
}
