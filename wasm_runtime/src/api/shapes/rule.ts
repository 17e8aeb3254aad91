/** What a rule is: it tells what is known of a result from what is known of the arguments. */

import { dtypeOfArray, findDType, isTypedArray, type DType } from "../dtypes";
import type { Options } from "../encode";
import { Handle } from "../handle";
import { knownOf, type Known } from "../known";
import { isInteger, type Shape } from "./sizes";

/** Options that change neither shape nor dtype of any operation's result. */
const INERT = new Set(
  (
    "requires_grad reverse low high mean std correction eps is_causal dropout_p enable_gqa value " +
    "count_include_pad largest sorted_ descending index start"
  ).split(" "),
);

/** The arguments of a call: by position, with the object itself first, and by their Python names. */
export class Arguments {
  readonly #read = new Set<string>();

  constructor(
    readonly positional: readonly unknown[],
    readonly options: Options = {},
  ) {}

  /** The argument at `position`, or called `name`; undefined where it was not given, or is null. */
  get(position: number, name: string): unknown {
    return this.positional[position] ?? this.option(name);
  }

  /** The option `name`; undefined where it was not given, or is null. */
  option(name: string): unknown {
    this.#read.add(name);
    return this.options[name] ?? undefined;
  }

  /** All options, for a rule that holds whatever they are called. */
  allOptions(): unknown[] {
    for (const name in this.options) this.#read.add(name);
    return Object.values(this.options);
  }

  /** Whether a rule has not looked at an option that may matter, such as a second name of an argument (`dim` for `axis`). */
  hasUnread(): boolean {
    const isGiven = (name: string): boolean => this.options[name] !== undefined;
    return Object.keys(this.options).some(
      (name) => isGiven(name) && !this.#read.has(name) && !INERT.has(name),
    );
  }

  /** Sizes from `position` on: as one array, or one by one. Undefined unless all are integers; null is `missing`. */
  sizes(position: number, missing?: number): number[] | undefined {
    const given = this.positional.slice(position);
    const sizes: readonly unknown[] = Array.isArray(given[0]) && given.length === 1 ? given[0] : given;
    const numbers = sizes.map((size) => size ?? missing);
    return numbers.every(isInteger) ? numbers : undefined;
  }

  /** What is known of the tensor at `position`. */
  known(position: number): Known {
    return knownOfValue(this.positional[position]);
  }

  /** The shape of the tensor at `position`. */
  shape(position: number): Shape | undefined {
    return shapeIn(this.known(position));
  }
}

export type Rule = (args: Arguments) => Known | undefined;
export type ManyRule = (args: Arguments) => readonly (Known | undefined)[] | undefined;

export function shapeIn({ shape }: Known): Shape | undefined {
  return shape?.every(isInteger) ? shape : undefined;
}

/** What is known of an operand: a tensor, a number, or numbers in arrays. */
export function knownOfValue(x: unknown): Known {
  if (x instanceof Handle) return knownOf(x) ?? {};
  if (isTypedArray(x)) return { shape: [x.length], dtype: dtypeOfArray(x) };
  const shape: number[] = [];
  let inner = x;
  for (; Array.isArray(inner); inner = (inner as unknown[])[0]) shape.push(inner.length);
  return ["number", "boolean", "bigint"].includes(typeof inner) ? { shape } : {};
}

/** `Known` without what is not known. Sizes that cannot be are those of arguments that Python refuses. */
export function result(x: Known, shape: Shape | undefined, dtype: DType | undefined): Known {
  return {
    ...(shape?.every((size) => isInteger(size) && size >= 0) && { shape }),
    ...(dtype && { dtype }),
    ...(x.device !== undefined && { device: x.device }),
  };
}

// --- dtypes of results

export const isFloat = (dtype: DType | undefined): boolean => dtype?.includes("float") ?? false;

/** The dtype that both are converted to, where that is plain to see. */
export function promoted(a: DType | undefined, b: DType | undefined): DType | undefined {
  if (a === b || a === undefined || b === undefined) return a === b ? a : undefined;
  if (isFloat(a) !== isFloat(b)) return isFloat(a) ? a : b;
  if (!isFloat(a)) return undefined;
  const wide = [a, b].find((dtype) => dtype === "float64");
  return wide ?? "float32"; // of 16 bits there are two, and theirs is float32
}

/** The dtype of `x` and an operand: a number does not change a dtype that can hold it. */
export function operandDType(x: Known, operand: unknown): DType | undefined {
  if (operand instanceof Handle || isTypedArray(operand))
    return promoted(x.dtype, knownOfValue(operand).dtype);
  if (typeof operand !== "number" || x.dtype === undefined || x.dtype === "bool") return undefined;
  return isFloat(x.dtype) || isInteger(operand) ? x.dtype : undefined;
}

export function dtypeOption(
  args: Arguments,
  position: number,
  otherwise: DType | undefined,
): DType | undefined {
  const dtype = args.get(position, "dtype");
  return dtype === undefined ? otherwise : typeof dtype === "string" ? findDType(dtype) : undefined;
}
