/** A file whose bytes come from stored blocks as far as these are there and sound, and then from the network. */

import { FetchError } from "../errors";
import { openResponse, type OpenedFile } from "../source";
import type { Entries, Entry } from "./entries";
import { Recorder } from "./recorder";
import { askRest, askWhole, discard, rangeOf, type Answer } from "./request";
import type { Hash } from "./sha256";

/** What a file is read for. */
export interface Purpose {
  readonly url: string;
  /** The name of the calling function, for errors. */
  readonly what: string;
  readonly signal: AbortSignal | undefined;
  /** The digest that the file has to have. */
  readonly sha256: string | undefined;
}

/** The length of the whole file that a response tells, for progress. */
function toldLength(response: Response): number | undefined {
  if (response.status === 206) return rangeOf(response)?.total;
  const { headers } = response;
  const length = headers.has("content-encoding") ? null : headers.get("content-length");
  return length === null ? undefined : Number(length);
}

/** Throws FetchError unless bytes have the digest that was asked for. */
export function checkDigest(hash: Hash, expected: string, what: string, name: string | URL): void {
  const digest = hash.digest("hex");
  if (digest === expected) return;
  const url = String(name);
  throw new FetchError(`${what}: expected a file of SHA-256 ${expected} at ${url}, got ${digest}`, { url });
}

export class CachedReading implements OpenedFile {
  readonly pieces: AsyncIterable<Uint8Array>;
  readonly length: number | undefined;
  readonly type: string | undefined;
  /** How many bytes come from the cache. They come first. */
  cached: number;
  readonly #entries: Entries;
  readonly #purpose: Purpose;
  readonly #entry: Entry;
  readonly #limit: number;
  readonly #makeHash: () => Hash;
  /** The digest of the first `#hashed` bytes, where it is not known that the file has the one that was asked for. */
  #hash: Hash | undefined;
  #hashed = 0;
  #recorder: Recorder | undefined;
  /** The response whose bytes come next. */
  #answer: Answer | undefined;
  /** How many bytes were read. */
  #at = 0;
  /** The length of the whole file, where it is certain. */
  #total: number | undefined;

  /** `entry`: what is stored. `answer`: the rest of it, where that was asked for. */
  constructor(
    entries: Entries,
    purpose: Purpose,
    entry: Entry,
    answer: Answer | undefined,
    limit: number,
    makeHash: () => Hash,
  ) {
    this.#entries = entries;
    this.#purpose = purpose;
    this.#entry = entry;
    this.#answer = answer;
    this.#limit = limit;
    this.#makeHash = makeHash;
    const { sha256 } = purpose;
    this.#hash = sha256 === undefined || entry.sha256 === sha256 ? undefined : makeHash();
    this.#total = entry.length;
    this.length = entry.length ?? (answer && toldLength(answer.response));
    this.type = entry.type;
    this.cached = entry.bytes;
    this.pieces = this.#read();
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    const { blocks, whole } = this.#entry;
    try {
      let count = 0;
      for await (const block of this.#readStored()) {
        count++;
        yield block;
      }
      if (!whole || count < blocks.length) {
        this.cached = this.#at;
        const stored = { blocks: blocks.slice(0, count), bytes: this.#at, whole: false };
        this.#recorder = new Recorder(this.#entries, { ...this.#entry, ...stored }, this.#limit);
        await this.#leaveStored();
        for await (const piece of this.#readNetwork(this.#recorder)) yield piece;
      }
      await this.#finish();
    } finally {
      discard(this.#answer?.response);
      await this.#recorder?.stop();
    }
  }

  /** All bytes were read. */
  async #finish(): Promise<void> {
    const { url, what, sha256 } = this.#purpose;
    if (this.#hash !== undefined && sha256 !== undefined) {
      try {
        checkDigest(this.#hash, sha256, what, url);
      } catch (error) {
        await this.#recorder?.discard();
        throw error;
      }
    }
    if (this.#recorder !== undefined) await this.#recorder.finish(sha256);
    else await this.#entries.touch(url).catch(() => undefined); // a store that is full or read-only
  }

  /** The blocks that are stored, up to the first that is not there or damaged. */
  async *#readStored(): AsyncGenerator<Uint8Array> {
    for (const digest of this.#entry.blocks) {
      const block = await this.#entries.block(this.#purpose.url, digest);
      this.#purpose.signal?.throwIfAborted();
      if (block === undefined) return;
      this.#update(block, this.#at);
      this.#at += block.length;
      yield block;
    }
  }

  /** Bytes at `position` of the file arrived. */
  #update(bytes: Uint8Array, position: number): void {
    this.#hash?.update(bytes.subarray(Math.max(0, this.#hashed - position)));
    this.#hashed = position + bytes.length;
  }

  /** Go on with the network. */
  async #leaveStored(): Promise<void> {
    const { url, what, signal, sha256 } = this.#purpose;
    if (this.#answer !== undefined && this.#answer.start !== this.#at) {
      discard(this.#answer.response); // it is the rest of more than was sound
      this.#answer = undefined;
    }
    if (sha256 === undefined || this.#hash !== undefined) return;
    // The digest was that of a file which is damaged now: it is computed again, from all bytes.
    [this.#hash, this.#hashed] = [this.#makeHash(), 0];
    this.#answer = await askWhole(url, undefined, what, signal);
  }

  /** The bytes from `#at`. A download that breaks off is continued, as long as each try brings bytes. */
  async *#readNetwork(recorder: Recorder): AsyncGenerator<Uint8Array> {
    const { signal, what, url } = this.#purpose;
    for (;;) {
      const answer = await this.#ask(recorder);
      const start = this.#at;
      let failure: unknown;
      try {
        for await (const piece of this.#bytesOf(answer)) {
          await recorder.add(piece);
          yield piece;
        }
      } catch (error) {
        failure = error;
      }
      const [at, total] = [this.#at, this.#total];
      if (total !== undefined && at > total) {
        await recorder.discard();
        throw lengthError(what, url, total, at);
      }
      if (failure === undefined && (total === undefined || at === total)) return;
      this.#answer = undefined;
      if (signal?.aborted || at === start || this.#entry.strong === undefined) {
        const error: unknown = failure ?? lengthError(what, url, total ?? 0, at);
        throw error;
      }
    }
  }

  /** A response with the bytes from `#at`. */
  async #ask(recorder: Recorder): Promise<Answer> {
    const { url, what, signal } = this.#purpose;
    this.#answer ??= await askRest(url, this.#entry, this.#at, what, signal);
    const { response, start, isSame } = this.#answer;
    if (response.status === 206) this.#total ??= rangeOf(response)?.total;
    const isRest = start === this.#at || (isSame && this.#entry.strong !== undefined);
    if (isRest || this.#hashed < this.#at) return this.#answer;
    await recorder.discard();
    throw new FetchError(
      `${what}: expected the rest of the file at ${url}, got another file: it changed while it was read, so try again`,
      { url },
    );
  }

  /** The bytes of a response from `#at`. */
  async *#bytesOf({ response, start }: Answer): AsyncGenerator<Uint8Array> {
    const { what, signal } = this.#purpose;
    let position = start;
    for await (const piece of openResponse(response, what, signal).pieces) {
      const rest = piece.subarray(Math.max(0, this.#at - position));
      if (this.#hashed < position + piece.length) this.#update(piece, position);
      position += piece.length;
      if (rest.length === 0) continue;
      this.#at = position;
      yield rest;
    }
  }
}

function lengthError(what: string, url: string, expected: number, got: number): FetchError {
  return new FetchError(`${what}: expected ${expected} bytes at ${url}, got ${got}`, { url });
}
