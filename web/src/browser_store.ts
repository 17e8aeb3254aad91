/** A store in IndexedDB, which reads blobs faster than the browser's cache storage. */

import type { KernelStorage } from "../../loader/src/kernels";
import { kindOf, type ByteStore } from "../../loader/src/store";

const [DATABASE, TABLE] = ["polygrad", "bytes"];

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => {
      resolve(request.result);
    };
    request.onerror = () => {
      reject(request.error ?? new Error("the database refused"));
    };
  });
}

/**
 * How long the database may take, in milliseconds. While a tab holds up the deletion or the upgrade of a database, others
 * get no answer.
 */
const PATIENCE = 10_000;

/** Open the database. Rejects where storage is disabled, another version is there, or there is no answer. */
function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1); // throws in private windows of some browsers
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      reject(new Error("the database does not answer"));
    }, PATIENCE);
    request.onupgradeneeded = () => {
      request.result.createObjectStore(TABLE);
    };
    request.onerror = () => {
      clearTimeout(timer);
      reject(request.error ?? new Error("the database refused"));
    };
    request.onsuccess = () => {
      clearTimeout(timer);
      const database = request.result;
      database.onversionchange = () => {
        database.close();
      };
      if (isLate) database.close();
      else resolve(database);
    };
  });
}

/** The range of keys that begin with `prefix`. */
function keysWith(prefix: string): IDBKeyRange {
  return IDBKeyRange.bound(prefix, `${prefix}\uffff`);
}

/** Settles when the transaction is complete; rejects when it was aborted, and nothing is stored. */
function stored(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => {
      resolve();
    };
    transaction.onabort = () => {
      reject(transaction.error ?? new Error("the database refused"));
    };
  });
}

/** The store of an origin. */
export interface BrowserStore extends ByteStore, KernelStorage {}

const KERNEL = "kernel-";

/**
 * The store of this origin. It keeps the newest entry of each kind, and the kernels of one build, because a page has one
 * build at a time and space is scarce. Each entry is one record, so two pages may write at once. Undefined in contexts
 * that are not secure: they have no digests, by which entries are checked.
 */
export function browserStore(): BrowserStore | undefined {
  if (!globalThis.isSecureContext) return undefined;
  const opened = open(); // now, while files arrive: it takes long in a new profile
  opened.catch(() => undefined); // treated as an empty store
  const table = async (mode: IDBTransactionMode): Promise<IDBObjectStore> =>
    (await opened).transaction(TABLE, mode).objectStore(TABLE);
  return {
    async find(key) {
      try {
        const blob = (await settled((await table("readonly")).get(key))) as unknown;
        if (!(blob instanceof Blob)) return undefined;
        return { length: blob.size, read: async () => new Uint8Array(await blob.arrayBuffer()) };
      } catch {
        return undefined;
      }
    },
    async set(key, bytes) {
      try {
        const entries = await table("readwrite");
        void entries.delete(keysWith(kindOf(key)));
        await settled(entries.put(new Blob([bytes]), key));
      } catch {
        // There is no room, or storage is disabled: the next visit starts as this one did.
      }
    },
    async load(build) {
      try {
        const entries = await table("readonly");
        const range = keysWith(`${KERNEL}${build}-`);
        const [keys, values] = await Promise.all([
          settled(entries.getAllKeys(range)) as Promise<string[]>,
          settled(entries.getAll(range)) as Promise<unknown[]>,
        ]);
        const kernels = new Map<string, Uint8Array<ArrayBuffer>>();
        for (const [i, value] of values.entries()) {
          const key = keys[i]?.slice(`${KERNEL}${build}-`.length) ?? "";
          if (value instanceof Uint8Array) kernels.set(key, value as Uint8Array<ArrayBuffer>);
        }
        return kernels;
      } catch {
        return new Map();
      }
    },
    async save(build, added, removed) {
      try {
        const entries = await table("readwrite");
        const own = `${KERNEL}${build}-`;
        void entries.delete(IDBKeyRange.bound(KERNEL, own, false, true));
        void entries.delete(IDBKeyRange.bound(`${own}\uffff`, `${KERNEL}\uffff`));
        for (const key of removed) void entries.delete(own + key);
        for (const [key, bytes] of added) void entries.put(bytes, own + key);
        await stored(entries.transaction);
        return true;
      } catch {
        return false;
      }
    },
  };
}
