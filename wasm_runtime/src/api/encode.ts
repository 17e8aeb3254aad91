/** Arguments as they are sent: see `call` and `decode` of polygrad/bridge.py. */

import { isTypedArray, type TypedArray } from "./dtypes";
import { ArgumentError } from "./generated/errors";
import { Handle } from "./handle";
import { ELLIPSIS, Slice } from "./slice";
import type { Plain } from "./transport";

/** Options by name. */
export type Options = Readonly<Record<string, unknown>>;

/** Whether `x` was written as `{...}`: options, as arrays, tensors and other objects are not. */
export function isOptions(x: unknown): x is Options {
  if (typeof x !== "object" || x === null) return false;
  const prototype: unknown = Object.getPrototypeOf(x);
  return prototype === Object.prototype || prototype === null;
}

/** Numbers that are the same on both sides without more ado. -0 is not: Python would take it for the integer 0. */
function isPlainNumber(x: number): boolean {
  return x !== 0 || 1 / x > 0;
}

/** The most arguments that go without JSON: one bit of the mask for each that is a handle, one for a list. */
const MOST_PLAIN = 24;

/**
 * Arguments that need no JSON, into `out`; the bit mask of those that are handles, and above it of those that are
 * lists of integers. -1 when one needs JSON, or when there are more than the mask has bits.
 */
export function encodePlain(args: readonly unknown[], out: Plain[]): number {
  if (args.length > MOST_PLAIN) return -1;
  let handles = 0;
  let lists = 0;
  for (let i = 0; i < args.length; i++) {
    const x = args[i];
    if (x instanceof Handle) {
      handles |= 1 << i;
      out.push(x.number);
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
  return handles + lists * 2 ** MOST_PLAIN;
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

/** How a typed array becomes a tensor, whose number is sent for it. */
export type Lift = (array: TypedArray) => Handle;

/** One argument as JSON for `decode` of the bridge. Throws ArgumentError for what cannot be sent. */
export function encode(x: unknown, lift: Lift): string {
  if (x instanceof Handle) return `{"$":${x.number}}`;
  if (typeof x === "number") return encodeNumber(x);
  if (x === null || x === undefined) return "null";
  if (typeof x === "boolean" || typeof x === "bigint") return String(x);
  if (typeof x === "string") return JSON.stringify(x);
  if (Array.isArray(x)) return `[${x.map((item) => encode(item, lift)).join(",")}]`;
  if (isTypedArray(x)) return `{"$":${lift(x).number}}`;
  if (x === ELLIPSIS) return '{"e":0}';
  if (x instanceof Slice) return `{"s":${encode([x.start, x.stop, x.step], lift)}}`;
  if (isOptions(x)) return `{"d":${encode(Object.entries(x), lift)}}`;
  const got = typeof x === "object" ? x.constructor.name : typeof x;
  throw new ArgumentError(`argument: expected a tensor, a number, text or an array of them, got a ${got}`);
}
