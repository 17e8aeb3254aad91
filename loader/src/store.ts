/** Bytes that are kept from one start to the next. They are checked: damaged bytes are treated as lost. */

type Bytes = Uint8Array<ArrayBuffer>;

/** An entry of a store, which is read on demand. */
export interface Entry {
  readonly length: number;
  /** Rejects when the entry is gone. */
  read(): Promise<Bytes>;
}

/**
 * A host's store. A key is a kind, a dash and more. The host keeps the newest entries of each kind. A lost entry costs
 * only time, so `set` may fail without an error.
 */
export interface ByteStore {
  find(key: string): Promise<Entry | undefined>;
  set(key: string, bytes: Bytes): Promise<void>;
}

/** The kind of `key`: a new entry displaces old entries of its kind. */
export function kindOf(key: string): string {
  return key.slice(0, key.indexOf("-") + 1);
}

const DIGEST_BYTES = 32;

async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** Store `bytes` under `key`, after their digest. */
export async function remember(store: ByteStore, key: string, bytes: Bytes): Promise<void> {
  const entry = new Uint8Array(DIGEST_BYTES + bytes.length);
  entry.set(await sha256(bytes));
  entry.set(bytes, DIGEST_BYTES);
  await store.set(key, entry);
}

/** An entry that is not checked yet. */
export interface Recalled {
  readonly length: number;
  readonly bytes: Promise<Bytes>;
  /** Whether the entry is whole. The bytes must not be used before. */
  readonly whole: Promise<boolean>;
}

/** `recall` that reads and checks while the caller prepares to use the bytes. */
export async function recallUnchecked(store: ByteStore, key: string): Promise<Recalled | undefined> {
  const entry = await store.find(key);
  if (entry === undefined || entry.length < DIGEST_BYTES) return undefined;
  const all = entry.read();
  const bytes = all.then((read) => read.subarray(DIGEST_BYTES));
  const check = async (): Promise<boolean> => {
    const [digest, actual] = [(await all).subarray(0, DIGEST_BYTES), await sha256(await bytes)];
    return digest.length === DIGEST_BYTES && digest.every((byte, i) => byte === actual[i]);
  };
  bytes.catch(() => undefined); // `whole` reports it
  return { length: entry.length - DIGEST_BYTES, bytes, whole: check().catch(() => false) };
}

/** The bytes under `key`; undefined when there are none, or they are damaged. */
export async function recall(store: ByteStore, key: string): Promise<Bytes | undefined> {
  const entry = await recallUnchecked(store, key);
  return entry !== undefined && (await entry.whole) ? await entry.bytes : undefined;
}
