/** Arguments as they are sent: see `call` and `decode` of polygrad/bridge.py. */

import { isTypedArray, type TypedArray } from "./dtypes";
import { ArgumentError } from "./generated/errors";
import { Handle, number, owner, type Owner } from "./handle";
import { ELLIPSIS, Slice } from "./slice";
import type { Body, Plain } from "./transport";

/** Options by name. */
export type Options = Readonly<Record<string, unknown>>;

/** Bytes as an argument. They are sent beside the JSON, which has their index. */
export class Bytes {
  constructor(readonly array: Uint8Array<ArrayBuffer>) {}
}

/** A function as an argument. Its body is sent beside the JSON, which has its index. */
export class Callback {
  constructor(readonly body: Body) {}
}

/** An object by its number, under which Python does not keep it. */
export class Dropped {
  constructor(readonly number: number) {}
}

/** Items that Python gets as a tuple. */
export class Tuple {
  constructor(readonly items: readonly unknown[]) {}
}

/** Arguments as JSON, and the bytes and the bodies of functions that it refers to. */
export interface EncodedArguments {
  readonly text: string;
  readonly buffers: Uint8Array<ArrayBuffer>[];
  readonly bodies: Body[];
}

/** Whether `x` was written as `{...}`: options, as arrays, tensors and other objects are not. */
export function isOptions(x: unknown): x is Options {
  if (typeof x !== "object" || x === null) return false;
  const prototype: unknown = Object.getPrototypeOf(x);
  return prototype === Object.prototype || prototype === null;
}

/** The number of an object of `session`. Throws ArgumentError for an object of another session, whose numbers are its own. */
function numberIn(session: Owner, handle: Handle): number {
  if (handle[owner] !== session) {
    throw new ArgumentError("argument: expected objects of one session, got one of another");
  }
  return handle[number];
}

/** Whether a number is the same on both sides without JSON. -0 is not: Python would take it for the integer 0. */
function isPlainNumber(x: number): boolean {
  return x !== 0 || 1 / x > 0;
}

/** The most arguments that go without JSON: the mask has a bit for each handle, and a bit for each list. */
const MAX_PLAIN = 24;

/**
 * Appends arguments that need no JSON to `out`. Returns the bit mask of those that are handles, and above it of those
 * that are lists of integers; -1 when an argument needs JSON, or when there are more than the mask has bits. Throws
 * ArgumentError for an object that is not of `session`.
 */
export function encodePlain(session: Owner, args: readonly unknown[], out: Plain[]): number {
  if (args.length > MAX_PLAIN) return -1;
  let handles = 0;
  let lists = 0;
  for (let i = 0; i < args.length; i++) {
    const x = args[i];
    if (x instanceof Handle) {
      handles |= 1 << i;
      out.push(numberIn(session, x as Handle));
    } else if (typeof x === "number") {
      if (!isPlainNumber(x)) return -1;
      out.push(x);
    } else if (typeof x === "string" || typeof x === "boolean" || typeof x === "bigint" || x === undefined) {
      out.push(x);
    } else if (x === null) {
      out.push(undefined);
    } else if (Array.isArray(x) && x.length > 0 && x.every(isInteger)) {
      lists |= 1 << i;
      out.push(x.join(","));
    } else {
      return -1;
    }
  }
  return handles + lists * 2 ** MAX_PLAIN;
}

function isInteger(x: unknown): boolean {
  return Number.isSafeInteger(x) && isPlainNumber(x as number);
}

function encodeNumber(x: number): string {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity";
  if (Object.is(x, -0)) return "-0.0";
  const text = String(x);
  return Number.isSafeInteger(x) || /[.e]/.test(text) ? text : `${text}.0`;
}

/** Makes a tensor of a typed array; the tensor is sent in its place. */
export type Lift = (array: TypedArray) => Handle;

/**
 * Arguments of any kind as JSON for `decode` of the bridge. Throws ArgumentError for what cannot be sent, and for an
 * object that is not of `session`.
 */
export function encode(session: Owner, x: unknown, lift: Lift): EncodedArguments {
  const buffers: Uint8Array<ArrayBuffer>[] = [];
  const bodies: Body[] = [];
  const text = (x: unknown): string => {
    if (x instanceof Handle) return `{"$":${numberIn(session, x as Handle)}}`;
    if (typeof x === "number") return encodeNumber(x);
    if (x === null || x === undefined) return "null";
    if (typeof x === "boolean" || typeof x === "bigint") return String(x);
    if (typeof x === "string") return JSON.stringify(x);
    if (Array.isArray(x)) return all(x);
    if (isTypedArray(x)) return `{"$":${lift(x)[number]}}`;
    if (x === ELLIPSIS) return '{"e":0}';
    if (x instanceof Slice) return `{"s":${all([x.start, x.stop, x.step])}}`;
    if (x instanceof Bytes) return `{"b":${buffers.push(x.array) - 1}}`;
    if (x instanceof Callback) return `{"f":${bodies.push(x.body) - 1}}`;
    if (x instanceof Dropped) return `{"r":${x.number}}`;
    if (x instanceof Tuple) return `{"t":${all(x.items)}}`;
    if (isOptions(x)) return `{"d":${all(Object.entries(x))}}`;
    const got = typeof x === "object" ? x.constructor.name : typeof x;
    throw new ArgumentError(`argument: expected a tensor, a number, text or an array of them, got a ${got}`);
  };
  const all = (items: readonly unknown[]): string => `[${items.map(text).join(",")}]`;
  return { text: text(x), buffers, bodies };
}
