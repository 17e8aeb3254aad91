/** Bytes kept in the browser's database: blobs there are read faster than what its cache storage holds. */

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

async function open(): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore(TABLE);
  };
  const database = await settled(request);
  database.onversionchange = () => {
    database.close();
  };
  return database;
}

/** The keys of one kind: `kind-` up to whatever comes behind it. */
function keysOf(key: string): IDBKeyRange {
  return IDBKeyRange.bound(kindOf(key), `${kindOf(key)}\uffff`);
}

/**
 * The store of this origin. Of each kind one entry is kept, the newest: a page is of one build at a time, and room is
 * scarce. Undefined where pages have no digests to check entries by: in contexts that are not secure.
 */
export function browserStore(): ByteStore | undefined {
  if (!globalThis.isSecureContext || typeof indexedDB === "undefined") return undefined;
  const opened = open(); // now, while files arrive: in a new profile it takes long
  opened.catch(() => undefined); // as if the store were empty
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
        void entries.delete(keysOf(key));
        await settled(entries.put(new Blob([bytes]), key));
      } catch {
        // No room, or storage is switched off: the next visit starts as this one did.
      }
    },
  };
}
