/**
 * Files by their address, which are kept from one visit or process to the next.
 *
 * Their bytes go on to the reader while they are stored, and stored blocks are checked before the reader gets them. Whatever
 * the store cannot do costs time alone: then the bytes come from the network.
 */

import { FetchError } from "../errors";
import { fetchFile, openResponse, type OpenedFile, type ReadOptions } from "../source";
import { Entries, type CachedFile, type Entry } from "./entries";
import { CachedReading, checkDigest, type Purpose } from "./reading";
import { askRest, askWhole, discard, freshUntil, versionOf, type Answer } from "./request";
import { Sha256, type Hash } from "./sha256";
import type { FileStore } from "./store";

export type { CachedFile } from "./entries";

/** The most bytes that are stored, unless `limit` says otherwise. */
const LIMIT = 16e9;

/** How a file at an address is opened. */
export type OpenOptions = Pick<ReadOptions, "signal" | "cache" | "sha256">;

/** The files of a host's store. */
export class FileCache {
  /**
   * The most bytes that are stored, from the next file on. Those files that were not used for the longest time make room for
   * new ones; a file that is larger is not stored.
   */
  limit = LIMIT;
  readonly #openStore: () => Promise<FileStore | undefined>;
  readonly #makeHash: () => Hash;
  #entries: Promise<Entries | undefined> | undefined;

  /** @internal `openStore` is called once; it gives undefined where the host has no store. */
  constructor(openStore: () => Promise<FileStore | undefined>, makeHash: () => Hash = () => new Sha256()) {
    this.#openStore = openStore;
    this.#makeHash = makeHash;
  }

  /** The stored files, those first that were not used for the longest time. */
  async list(): Promise<CachedFile[]> {
    return (await (await this.#opened())?.list()) ?? [];
  }

  /** Remove the file at an address; whether it was stored. */
  async delete(url: string | URL): Promise<boolean> {
    const address = addressOf(url);
    const entries = await this.#opened();
    if (address === undefined || entries === undefined) return false;
    return entries.remove(address);
  }

  /** Remove all files. Rejects with the host's error where one cannot be removed. */
  async clear(): Promise<void> {
    await (await this.#opened())?.clear();
  }

  /**
   * @internal Open the file at an address. `what`: the name of the calling function, for errors. Rejects with FetchError when
   * there is none; with the signal's reason.
   */
  async open(url: string | URL, what: string, options: OpenOptions = {}): Promise<OpenedFile> {
    const { signal } = options;
    signal?.throwIfAborted();
    const sha256 = digestOption(options.sha256, what);
    const address = addressOf(url);
    const entries = options.cache === false || address === undefined ? undefined : await this.#opened();
    if (entries !== undefined && address !== undefined) {
      return this.#openCached(entries, { url: address, what, signal, sha256 });
    }
    const response = await fetchFile(url, what, signal);
    return this.verified(openResponse(response, what, signal), what, url, options);
  }

  /** @internal `file`, whose end is an error unless it has the digest of the options. */
  verified(file: OpenedFile, what: string, name: string | URL, options: OpenOptions): OpenedFile {
    const sha256 = digestOption(options.sha256, what);
    if (sha256 === undefined) return file;
    const hash = this.#makeHash();
    async function* pieces(): AsyncGenerator<Uint8Array> {
      for await (const piece of file.pieces) {
        hash.update(piece);
        yield piece;
      }
      checkDigest(hash, sha256 ?? "", what, name);
    }
    return { ...file, pieces: pieces() };
  }

  #opened(): Promise<Entries | undefined> {
    this.#entries ??= this.#openStore().then(
      (store) => store && new Entries(store),
      () => undefined,
    );
    return this.#entries;
  }

  async #openCached(entries: Entries, purpose: Purpose): Promise<OpenedFile> {
    const { url, what, signal, sha256 } = purpose;
    const found = await entries.find(url);
    const stored = usable(found, sha256);
    const isCertain = sha256 !== undefined || (stored?.fresh ?? 0) > Date.now();
    if (stored?.whole && isCertain) return this.#read(entries, purpose, stored);
    let answer: Answer;
    try {
      answer = await ask(purpose, stored);
    } catch (error) {
      if (signal?.aborted || !(error instanceof FetchError)) throw error;
      const { status } = error;
      if (isMissing(status) && found?.missing !== status) await noteMissing(entries, url, status);
      if (status !== undefined && status < 500) throw error;
      if (stored?.whole) return this.#read(entries, purpose, stored);
      throw found?.missing === undefined ? error : wasMissing(purpose, found.missing, error);
    }
    const fresh = freshUntil(url, answer.response, Date.now());
    if (stored?.whole && answer.isSame) {
      discard(answer.response);
      const entry = { ...stored, fresh: fresh ?? 0 };
      if (entry.fresh > Date.now()) await entries.save(entry).catch(() => undefined);
      return this.#read(entries, purpose, entry);
    }
    if (stored !== undefined && answer.isSame && answer.start > 0) {
      return this.#read(entries, purpose, { ...stored, fresh: fresh ?? 0 }, answer);
    }
    if (found !== undefined) await entries.remove(url).catch(() => false);
    const entry = fresh === undefined ? undefined : newEntry(purpose, answer.response, fresh);
    if (entry !== undefined) return this.#read(entries, purpose, entry, answer);
    return this.verified(openResponse(answer.response, what, signal), what, url, { sha256 });
  }

  #read(entries: Entries, purpose: Purpose, entry: Entry, answer?: Answer): OpenedFile {
    return new CachedReading(entries, purpose, entry, answer, this.limit, this.#makeHash);
  }
}

/** `found`, if the file that is asked for may be read from it. */
function usable(found: Entry | undefined, sha256: string | undefined): Entry | undefined {
  if (found?.missing !== undefined) return undefined;
  const isOther = found?.whole && sha256 !== undefined && found.sha256 !== sha256;
  return isOther ? undefined : found;
}

/** Ask whether the file is the stored one, or for its rest. */
function ask({ url, what, signal }: Purpose, stored: Entry | undefined): Promise<Answer> {
  if (stored === undefined || stored.whole) return askWhole(url, stored, what, signal);
  return askRest(url, stored, stored.bytes, what, signal);
}

/** What will be stored of a response's file; undefined where one could never tell whether it is still the file. */
function newEntry({ url, sha256 }: Purpose, response: Response, fresh: number): Entry | undefined {
  const version = versionOf(url, response);
  const isKnown = version.etag !== undefined || version.lastModified !== undefined;
  if (!isKnown && sha256 === undefined && fresh <= Date.now()) return undefined;
  const type = response.headers.get("content-type") ?? undefined;
  return { ...version, url, type, fresh, blocks: [], bytes: 0, whole: false };
}

/** Whether a status says that there is no such file. */
function isMissing(status: number | undefined): status is number {
  return status === 404 || status === 410;
}

/** Note that there is no such file, for times without a network: models have files that are optional. */
async function noteMissing(entries: Entries, url: string, status: number): Promise<void> {
  try {
    await entries.remove(url);
    await entries.save({ url, missing: status, fresh: 0, blocks: [], bytes: 0, whole: false });
  } catch {
    // There is no room: without a network the error is another.
  }
}

function wasMissing({ url, what }: Purpose, status: number, cause: unknown): FetchError {
  const message = `${what}: expected a file at ${url}, got no answer, and status ${status} before`;
  return new FetchError(message, { url, status, cause });
}

/** An address by which a file is stored; undefined for others, such as those of Blobs. */
function addressOf(url: string | URL): string | undefined {
  const { document, location } = globalThis as {
    document?: { baseURI: string };
    location?: { href: string };
  };
  if (!URL.canParse(url, document?.baseURI ?? location?.href)) return undefined;
  const address = new URL(url, document?.baseURI ?? location?.href);
  address.hash = "";
  return /^https?:$/.test(address.protocol) ? address.href : undefined;
}

/** A digest that users give. Throws RangeError for what is none. */
function digestOption(sha256: string | undefined, what: string): string | undefined {
  if (sha256 === undefined || /^[0-9a-f]{64}$/i.test(sha256)) return sha256?.toLowerCase();
  throw new RangeError(`${what}: sha256: expected 64 hexadecimal digits, got ${JSON.stringify(sha256)}`);
}
