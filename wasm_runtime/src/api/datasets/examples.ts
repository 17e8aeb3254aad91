/**
 * `Examples`: a data set that is read example by example, and comes in batches. Items are shuffled, held out and skipped
 * before they are decoded, by functions of a seed and a position alone.
 */

import type { Packed } from "../data";
import { ArgumentError, ShapeError } from "../generated/errors";
import type { Tensor } from "../generated/tensor";
import { tensorOfPacked } from "../make";
import { checkOptions, type OptionNames } from "../options";
import type { Session } from "../session";
import { ItemSource } from "./item_source";
import { Prefetch } from "./prefetch";
import { shuffle, uniformOf } from "./random";

/** How many batches are prepared ahead. */
export const DEPTH = 2;

/** The input and the target of one example, or of a batch. */
export type PackedPair = readonly [input: Packed, target: Packed];

/** How examples become batches. */
export interface BatchOptions {
  /** Examples of a batch: 32 unless given. */
  readonly batchSize?: number;
  /** Whether examples are in another order in each epoch; true unless given. */
  readonly shuffle?: boolean;
  /** Whether a smaller batch at the end is left out. */
  readonly dropLast?: boolean;
  /** Of the order. */
  readonly seed?: number;
  /** The number of the epoch, on which the order depends. */
  readonly epoch?: number;
}

/** A part of the examples, drawn by the seed. */
export interface Part {
  readonly fraction: number;
  readonly isHeldOut: boolean;
}

/** The batches of one epoch. */
export interface BatchPlan extends Required<BatchOptions> {
  /** How many batches are skipped. */
  readonly start: number;
  readonly part?: Part | undefined;
}

const OPTIONS: OptionNames<BatchOptions> = {
  batchSize: true,
  shuffle: true,
  dropLast: true,
  seed: true,
  epoch: true,
};

/** What draws a number: the order, or which examples are held out. */
const [ORDER, BUFFER, HELD_OUT] = [0, 1, 2];

export class Examples {
  readonly #session: Session;
  readonly #source: ItemSource<unknown>;
  readonly #decode: (item: never) => PackedPair | Promise<PackedPair>;
  readonly #bufferSize: number;

  /** @internal `decode`: makes an example of an item. */
  constructor(
    session: Session,
    source: ItemSource<unknown>,
    decode: (item: never) => PackedPair | Promise<PackedPair>,
    bufferSize = 1024,
  ) {
    this.#session = session;
    this.#source = source;
    this.#decode = decode;
    this.#bufferSize = bufferSize;
    if (!Number.isInteger(bufferSize) || bufferSize < 1) {
      throw new ArgumentError(`shuffleBuffer: expected an integer of at least 1, got ${String(bufferSize)}`);
    }
  }

  /**
   * The batches of an epoch, as pairs of tensors; the next ones are prepared meanwhile.
   *
   *     for await (const [x, y] of examples.batches({ batchSize: 32, seed: 1 })) step.run(x, y);
   *
   * Rejects with what the source throws, ArgumentError, ShapeError.
   */
  async *batches(options: BatchOptions = {}): AsyncGenerator<[inputs: Tensor, targets: Tensor]> {
    checkOptions("batches", options, OPTIONS);
    const { batchSize = 32, epoch = 0, seed = 0, dropLast = false } = options;
    if (!Number.isInteger(batchSize) || batchSize < 1) {
      throw new ArgumentError(`batches: batchSize: expected an integer of at least 1, got ${batchSize}`);
    }
    const plan = { batchSize, epoch, seed, dropLast, shuffle: options.shuffle ?? true, start: 0 };
    const ahead = new Prefetch(this.packed(plan), DEPTH);
    try {
      for (let pair = await ahead.next(); pair !== undefined; pair = await ahead.next()) {
        yield this.#tensors(pair);
      }
    } finally {
      ahead.close();
    }
  }

  /**
   * All examples in their order as [inputs, targets], for data that fit into the device's memory: there `fit` gathers
   * batches faster than they can be read.
   */
  async load(): Promise<[inputs: Tensor, targets: Tensor]> {
    const plan = { batchSize: Infinity, shuffle: false, dropLast: false, seed: 0, epoch: 0, start: 0 };
    for await (const pair of this.packed(plan)) return this.#tensors(pair);
    throw new ArgumentError("load: expected at least one example, got none");
  }

  /** @internal How many batches an epoch has, where that is known. */
  count({ batchSize, dropLast, seed, part }: Omit<BatchPlan, "epoch" | "start">): number | null {
    const { items } = this.#source;
    if (items === undefined) return null;
    const rows = items.filter((_, i) => isIn(part, seed, i)).length;
    return dropLast ? Math.floor(rows / batchSize) : Math.ceil(rows / batchSize);
  }

  /** @internal The batches of an epoch, not yet tensors. */
  async *packed(plan: BatchPlan): AsyncGenerator<PackedPair> {
    let items: unknown[] = [];
    let position = 0;
    for await (const item of this.#items(plan)) {
      items.push(item);
      if (items.length < plan.batchSize) continue;
      if (position++ >= plan.start) yield await this.#batchOf(items);
      items = [];
    }
    if (items.length > 0 && !plan.dropLast && position >= plan.start) yield await this.#batchOf(items);
  }

  /** The items of an epoch in its order: of an array all are shuffled, else those of a buffer. */
  async *#items({ seed, epoch, shuffle: isShuffled, part }: BatchPlan): AsyncGenerator {
    const { items } = this.#source;
    if (items !== undefined) {
      const order = items.filter((_, i) => isIn(part, seed, i));
      if (isShuffled) shuffle(order, seed, epoch, ORDER);
      yield* order;
      return;
    }
    const buffer: unknown[] = [];
    let [index, drawn] = [0, 0];
    for await (const item of await this.#source.open(epoch)) {
      if (!isIn(part, seed, index++)) continue;
      if (!isShuffled) yield item;
      else if (buffer.length < this.#bufferSize) buffer.push(item);
      else {
        const at = Math.floor(uniformOf(seed, epoch, BUFFER, drawn++) * buffer.length);
        yield buffer[at];
        buffer[at] = item;
      }
    }
    shuffle(buffer, seed, epoch, ORDER);
    yield* buffer;
  }

  async #batchOf(items: readonly unknown[]): Promise<PackedPair> {
    const pairs = await Promise.all(items.map(async (item) => this.#decode(item as never)));
    return [
      stack(
        pairs.map(([input]) => input),
        "input",
      ),
      stack(
        pairs.map(([, target]) => target),
        "target",
      ),
    ];
  }

  #tensors([input, target]: PackedPair): [Tensor, Tensor] {
    return [tensorOfPacked(this.#session, input), tensorOfPacked(this.#session, target)];
  }
}

function isIn(part: Part | undefined, seed: number, index: number): boolean {
  return part === undefined || uniformOf(seed, HELD_OUT, index) < part.fraction === part.isHeldOut;
}

/** Elements of the same shape and dtype as rows. Throws ShapeError. */
export function stack(rows: readonly Packed[], what: string): Packed {
  const [first] = rows as readonly [Packed];
  const { dtype, shape, cast } = first;
  const size = first.bytes.length;
  const bytes = new Uint8Array(size * rows.length);
  for (const [i, row] of rows.entries()) {
    if (!isLike(row, first)) {
      throw new ShapeError(
        `${what}: expected examples of one shape and dtype, got ${describe(first)} and ${describe(row)}`,
      );
    }
    bytes.set(row.bytes, i * size);
  }
  return { bytes, dtype, shape: [rows.length, ...shape], ...(cast !== undefined && { cast }) };
}

function isLike(a: Packed, b: Packed): boolean {
  const isSame = a.dtype === b.dtype && a.cast === b.cast && a.shape.length === b.shape.length;
  return isSame && a.shape.every((size, i) => size === b.shape[i]);
}

/** The dtype and the shape of elements, for errors and as a key. */
export function describe({ shape, dtype, cast }: Packed): string {
  return `${cast ?? dtype} [${shape.join(", ")}]`;
}
