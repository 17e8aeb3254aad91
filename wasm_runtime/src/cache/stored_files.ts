/**
 * Reads files by their address, and stores them: their bytes go on to the reader while they are stored, and stored blocks are
 * checked before the reader gets them. Whatever the store cannot do costs time alone: then the bytes come from the network.
 */

import { FetchError } from "../errors";
import { fetchFile, openResponse, type OpenedFile } from "../source";
import { Entries, type CachedFile, type Entry } from "./entries";
import { CachedReading, checkDigest, type Purpose } from "./reading";
import { askRest, askWhole, discard, freshUntil, versionOf, type Answer } from "./request";
import { Sha256, type Hash } from "./sha256";
import type { FileStore } from "./store";

/** The files of a host's store. */
export class StoredFiles {
  readonly #openStore: () => Promise<FileStore | undefined>;
  readonly #makeHash: () => Hash;
  #entries: Promise<Entries | undefined> | undefined;

  /** `openStore` is called once; it gives undefined where the host has no store. */
  constructor(openStore: () => Promise<FileStore | undefined>, makeHash: () => Hash = () => new Sha256()) {
    this.#openStore = openStore;
    this.#makeHash = makeHash;
  }

  async list(): Promise<CachedFile[]> {
    return (await (await this.#opened())?.list()) ?? [];
  }

  async remove(url: string): Promise<boolean> {
    return (await (await this.#opened())?.remove(url)) ?? false;
  }

  async clear(): Promise<void> {
    await (await this.#opened())?.clear();
  }

  /** Open a file, of which up to `limit` bytes may be stored. Rejects as `FileCache.open`. */
  async open(purpose: Purpose, limit: number): Promise<OpenedFile> {
    const entries = await this.#opened();
    if (entries !== undefined) return this.#openCached(entries, purpose, limit);
    return this.#openPlain(await fetchFile(purpose.url, purpose.what, purpose.signal), purpose);
  }

  /** Bytes whose end is an error unless they have the digest `sha256`. */
  async *checked(
    pieces: AsyncIterable<Uint8Array>,
    sha256: string,
    what: string,
    name: string | URL,
  ): AsyncGenerator<Uint8Array> {
    const hash = this.#makeHash();
    for await (const piece of pieces) {
      hash.update(piece);
      yield piece;
    }
    checkDigest(hash, sha256, what, name);
  }

  #opened(): Promise<Entries | undefined> {
    this.#entries ??= this.#openStore().then(
      (store) => store && new Entries(store),
      () => undefined,
    );
    return this.#entries;
  }

  /** The file of a response, which is not stored. */
  #openPlain(response: Response, { url, what, signal, sha256 }: Purpose): OpenedFile {
    const file = openResponse(response, what, signal);
    return sha256 === undefined ? file : { ...file, pieces: this.checked(file.pieces, sha256, what, url) };
  }

  async #openCached(entries: Entries, purpose: Purpose, limit: number): Promise<OpenedFile> {
    const { url, signal, sha256 } = purpose;
    const read = (entry: Entry, rest?: Answer): OpenedFile =>
      new CachedReading(entries, purpose, entry, rest, limit, this.#makeHash);
    const found = await entries.find(url);
    const stored = usable(found, sha256);
    const isCertain = sha256 !== undefined || (stored?.fresh ?? 0) > Date.now();
    if (stored?.whole && isCertain) return read(stored);
    let answer: Answer;
    try {
      answer = await ask(purpose, stored);
    } catch (error) {
      if (signal?.aborted || !(error instanceof FetchError)) throw error;
      const { status } = error;
      if (isMissing(status) && found?.missing !== status) await noteMissing(entries, url, status);
      if (status !== undefined && status < 500) throw error;
      if (stored?.whole) return read(stored);
      throw found?.missing === undefined ? error : wasMissing(purpose, found.missing, error);
    }
    const fresh = freshUntil(url, answer.response, Date.now());
    if (stored?.whole && answer.isSame) {
      discard(answer.response);
      const entry = { ...stored, fresh: fresh ?? 0 };
      if (entry.fresh > Date.now()) await entries.save(entry).catch(() => undefined);
      return read(entry);
    }
    if (stored !== undefined && answer.isSame && answer.start > 0) {
      return read({ ...stored, fresh: fresh ?? 0 }, answer);
    }
    if (found !== undefined) await entries.remove(url).catch(() => false);
    const entry = fresh === undefined ? undefined : newEntry(purpose, answer.response, fresh);
    if (entry !== undefined) return read(entry, answer);
    return this.#openPlain(answer.response, purpose);
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
