/** Files that are passed on to Python in blocks while they arrive, so that no file is ever in memory as a whole. */

import { PieceReader } from "../pieces";
import type { Progress } from "../progress";
import { cachedOf, type OpenedFile, type ReadOptions } from "../source";
import { Bytes } from "./encode";
import { Handle } from "./handle";
import type { Session } from "./session";

/** Bytes that are sent to Python at once. */
const BLOCK = 4 << 20;

/** A module of Python with `Loading` (`begin`, `feed`, `finish`) and `piece`. */
type Loader = "onnx" | "pipelines";

type FeedOptions = Pick<ReadOptions, "onProgress" | "signal">;

/** End the download of a file, also where nothing of it was read: a generator that has not begun has no clean-up. */
export async function endDownload({ pieces }: OpenedFile): Promise<void> {
  const iterator = pieces[Symbol.asyncIterator]();
  try {
    await iterator.next();
    await iterator.return?.();
  } catch {
    // A download that has failed has ended.
  }
}

/** Files on their way to a `Loading` of a module of Python. */
export class Feeder {
  readonly #session: Session;
  readonly #module: Loader;
  readonly #loading: Handle;
  readonly #options: FeedOptions;
  #loaded = 0;
  #cached = 0;
  /** The length of all files, where it is known. */
  total: number | undefined;

  constructor(session: Session, module: Loader, loading: Handle, options: FeedOptions) {
    this.#session = session;
    this.#module = module;
    this.#loading = loading;
    this.#options = options;
  }

  /** Send the beginning of a file, until its header is known. */
  async sendHeader(number: number, { pieces, length }: OpenedFile): Promise<void> {
    await this.#begin(number, length);
    for await (const piece of pieces) if (await this.#feed(number, new Uint8Array(piece))) return;
  }

  /** Send a file. */
  async send(number: number, file: OpenedFile): Promise<void> {
    const reader = new PieceReader(file.pieces);
    await this.#begin(number, file.length);
    const [before, cachedBefore] = [this.#loaded, this.#cached];
    for (;;) {
      const block = await reader.copy(BLOCK);
      if (block.length === 0) return;
      this.#loaded += block.length;
      this.#cached = cachedBefore + (cachedOf(file, this.#loaded - before).cached ?? 0);
      await this.#feed(number, block);
      const [loaded, total] = [this.#loaded, this.total];
      this.#tell({ fraction: total ? loaded / total : 0, loaded, total });
    }
  }

  /** The model. Tells that all has arrived, where the total was not known. */
  async finish(): Promise<number> {
    const loaded = this.#loaded;
    this.#options.signal?.throwIfAborted();
    if (!this.total) this.#tell({ fraction: 1, loaded, total: loaded });
    return this.#session.callWaiting(`$${this.#module}.Loading.finish`, [this.#loading]);
  }

  #tell(progress: Omit<Progress, "stage" | "cached">): void {
    const cached = this.#cached > 0 ? { cached: this.#cached } : {};
    this.#options.onProgress?.({ stage: "download", ...progress, ...cached });
  }

  async #begin(number: number, length: number | undefined): Promise<void> {
    await this.#session.valueWaiting(`$${this.#module}.Loading.begin`, [
      this.#loading,
      number,
      length ?? null,
    ]);
  }

  /** Send bytes, which are not used afterwards; whether the header of the file is known. */
  async #feed(file: number, bytes: Uint8Array<ArrayBuffer>): Promise<unknown> {
    const [session, { signal }] = [this.#session, this.#options];
    signal?.throwIfAborted();
    const piece = new Handle(session, session.callPacked(`$${this.#module}.piece`, [new Bytes(bytes)]));
    try {
      return await session.valueWaiting(`$${this.#module}.Loading.feed`, [this.#loading, file, piece]);
    } finally {
      piece.dispose();
    }
  }
}
