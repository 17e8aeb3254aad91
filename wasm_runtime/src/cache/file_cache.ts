/**
 * Files by their address, which are kept from one visit or process to the next. What stores and reads them is loaded at its
 * first use.
 */

import { checkAddress } from "../addresses";
import { DownloadBudget, LimitedDownload, type DownloadLimits } from "../download_limits";
import { FetchError, type FetchFailure } from "../errors";
import { fetchFile, openResponse, withFailures, type OpenedFile, type ReadOptions } from "../source";
import type { CachedFile } from "./entries";
import type { StoredFiles } from "./stored_files";

export type { CachedFile } from "./entries";

/** The most bytes that are stored, unless `limit` says otherwise. */
const LIMIT = 16e9;

/** How a file at an address is opened. */
export interface OpenOptions extends Pick<ReadOptions, "signal" | "cache" | "sha256" | keyof DownloadLimits> {
  /** In the place of limits: those that it shares with other files. */
  readonly budget?: DownloadBudget | undefined;
}

/** The files that a host keeps. */
export class FileCache {
  /**
   * The most bytes that are stored, from the next file on. Those files that were not used for the longest time make room for
   * new ones; a file that is larger is not stored.
   */
  limit = LIMIT;
  readonly #load: () => Promise<StoredFiles>;
  #files: Promise<StoredFiles> | undefined;

  /** @internal */
  constructor(load: () => Promise<StoredFiles>) {
    this.#load = load;
  }

  /** The stored files, those first that were not used for the longest time. */
  async list(): Promise<CachedFile[]> {
    return (await this.#loaded()).list();
  }

  /** Remove the file at an address; whether it was stored. */
  async delete(url: string | URL): Promise<boolean> {
    const address = addressOf(url);
    return address !== undefined && (await this.#loaded()).remove(address);
  }

  /** Remove all files. Rejects with the host's error where one cannot be removed. */
  async clear(): Promise<void> {
    await (await this.#loaded()).clear();
  }

  /**
   * @internal Open the file at an address. `what`: the name of the calling function, for errors. Rejects with FetchError when
   * there is none, for addresses that `checkAddress` refuses, and beyond the limits; with the signal's reason.
   */
  async open(url: string | URL, what: string, options: OpenOptions = {}): Promise<OpenedFile> {
    options.signal?.throwIfAborted();
    const budget = options.budget ?? new DownloadBudget(what, options);
    const download = new LimitedDownload(String(url), what, budget);
    return download.open(
      () => this.#open(url, what, { ...options, signal: download.signal }),
      options.signal,
    );
  }

  async #open(url: string | URL, what: string, options: OpenOptions): Promise<OpenedFile> {
    const { signal } = options;
    const sha256 = digestOption(options.sha256, what);
    const checkable = addressOf(url);
    if (checkable !== undefined) await checkAddress(checkable, what, sha256);
    const address = options.cache === false ? undefined : checkable;
    if (address !== undefined) {
      const files = await this.#loaded();
      try {
        return withOwnErrors(await files.open({ url: address, what, signal, sha256 }, this.limit));
      } catch (error) {
        throw ownError(error);
      }
    }
    const response = await fetchFile(url, what, signal);
    return this.verified(openResponse(response, what, signal), what, url, options);
  }

  /** @internal `file`, whose end is an error unless it has the digest of the options. */
  verified(file: OpenedFile, what: string, name: string | URL, options: OpenOptions): OpenedFile {
    const sha256 = digestOption(options.sha256, what);
    if (sha256 === undefined) return file;
    const load = (): Promise<StoredFiles> => this.#loaded();
    async function* pieces(): AsyncGenerator<Uint8Array> {
      yield* (await load()).checked(file.pieces, sha256 ?? "", what, name);
    }
    return { ...file, pieces: withFailures(pieces(), ownError) };
  }

  #loaded(): Promise<StoredFiles> {
    this.#files ??= this.#load().catch((error: unknown) => {
      this.#files = undefined;
      throw error;
    });
    return this.#files;
  }
}

/** `error`, of this bundle's class: what stores files may be a bundle of its own, with classes of its own. */
function ownError(error: unknown): unknown {
  const isOther = error instanceof Error && error.name === "FetchError" && !(error instanceof FetchError);
  if (!isOther) return error;
  const { url, status } = error as Error & FetchFailure;
  return new FetchError(error.message, { url, status, cause: error });
}

function withOwnErrors(file: OpenedFile): OpenedFile {
  return {
    pieces: withFailures(file.pieces, ownError),
    length: file.length,
    type: file.type,
    get cached() {
      return file.cached; // it changes while the file is read
    },
  };
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
