/** `ItemSource`: items from wherever they come, once for each epoch. */

import { piecesOf } from "../../source";
import { ArgumentError } from "../generated/errors";

/** Items: an array or another iterable, also an asynchronous one, or a stream. */
export type Items<T> = Iterable<T> | AsyncIterable<T> | ReadableStream<T>;

/**
 * Where items come from: an array, an iterable or a stream; or a function that gives one for each epoch, by its number.
 * Generators and streams can be read once.
 */
export type ItemsOf<T> = Items<T> | ((epoch: number) => Items<T> | Promise<Items<T>>);

export class ItemSource<T> {
  readonly #given: ItemsOf<T>;
  readonly #what: string;
  #wasRead = false;

  /** `what`: the name of the calling function, for errors. Throws ArgumentError. */
  constructor(given: ItemsOf<T>, what: string) {
    this.#given = given;
    this.#what = what;
    if (typeof given !== "function") checkItems(given, what);
  }

  /** All items, where they are an array. */
  get items(): readonly T[] | undefined {
    return Array.isArray(this.#given) ? (this.#given as readonly T[]) : undefined;
  }

  /** The items of an epoch. Rejects with ArgumentError for a second reading of what can be read once. */
  async open(epoch: number): Promise<Iterable<T> | AsyncIterable<T>> {
    const given = this.#given;
    const items = typeof given === "function" ? await given(epoch) : given;
    checkItems(items, this.#what);
    if (typeof given !== "function" && isReadOnce(items)) {
      if (this.#wasRead) {
        throw new ArgumentError(
          `${this.#what}: expected a function that gives the items of each epoch, or what can be iterated once for ` +
            "each, got a generator or a stream, which was read before: validation by a fraction reads twice, too",
        );
      }
      this.#wasRead = true;
    }
    return isStream(items) ? piecesOf(items) : items;
  }
}

function isStream(x: unknown): x is ReadableStream {
  return typeof (x as Partial<ReadableStream> | null)?.getReader === "function";
}

/** Whether `x` can be read as items. */
export function isItems(x: unknown): boolean {
  if (typeof x !== "object" || x === null) return false;
  return isStream(x) || Symbol.asyncIterator in x || Symbol.iterator in x;
}

function checkItems(x: unknown, what: string): void {
  if (isItems(x)) return;
  const got = x === null ? "null" : typeof x === "object" ? x.constructor.name : `a ${typeof x}`;
  throw new ArgumentError(
    `${what}: expected an iterable, a stream, or a function that gives one, got ${got}`,
  );
}

/** Whether `x` is a stream, or an iterator, as generators are. */
function isReadOnce(x: object): boolean {
  return isStream(x) || typeof (x as { next?: unknown }).next === "function";
}
