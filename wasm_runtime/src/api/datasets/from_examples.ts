/** `nn.data.fromExamples`: examples as JavaScript data. */

import { isShaped, packAny, type NestedData, type Packed, type ShapedData } from "../data";
import { toDType, type DTypeName, type TypedArray } from "../dtypes";
import { ArgumentError, ShapeError } from "../generated/errors";
import { checkOptions, type OptionNames } from "../options";
import type { Session } from "../session";
import { Examples, type PackedPair } from "./examples";
import { ItemSource, type ItemsOf } from "./item_source";

/** The input or the target of an example: a number, nested arrays, a typed array; or a typed array with a shape. */
export type ExampleData = NestedData | TypedArray | ShapedData;

/** The input and the target of one example. */
export type Example = readonly [input: ExampleData, target: ExampleData];

export interface ExampleOptions {
  /** The dtypes of inputs and of targets; those of the data unless given: numbers are float32. */
  readonly dtypes?: readonly [inputs: DTypeName | undefined, targets: DTypeName | undefined];
  /** From how many items the next one is drawn: 1,024 unless given. The items of an array are shuffled as a whole. */
  readonly shuffleBuffer?: number;
}

const OPTIONS: OptionNames<ExampleOptions> = { dtypes: true, shuffleBuffer: true };

export function fromExamples(
  session: Session,
  source: ItemsOf<Example>,
  options: ExampleOptions = {},
): Examples {
  checkOptions("fromExamples", options, OPTIONS);
  const { dtypes = [undefined, undefined], shuffleBuffer } = options;
  const items = new ItemSource(source, "fromExamples");
  return new Examples(
    session,
    items,
    (example: Example) => packExample(example, dtypes, "fromExamples"),
    shuffleBuffer,
  );
}

/** The two elements of an item. Throws ArgumentError for what is no pair. */
export function pairOf(item: unknown, expected: string): readonly [unknown, unknown] {
  if (Array.isArray(item) && item.length === 2) return item as unknown as [unknown, unknown];
  const kind = item === null ? "null" : typeof item === "object" ? "an object" : `a ${typeof item}`;
  throw new ArgumentError(`${expected}, got ${Array.isArray(item) ? `an array of ${item.length}` : kind}`);
}

/** An example's elements. Throws ArgumentError, ShapeError, DTypeError, OverflowError. */
export function packExample(
  example: Example,
  dtypes: readonly [DTypeName | undefined, DTypeName | undefined],
  what: string,
): PackedPair {
  const [input, target] = pairOf(example, `${what}: expected examples [input, target]`) as Example;
  return [packPart(input, dtypes[0], what), packPart(target, dtypes[1], what)];
}

function packPart(data: ExampleData, name: DTypeName | undefined, what: string): Packed {
  const dtype = name === undefined ? undefined : toDType(name);
  if (!isShaped(data)) return packAny(data, dtype);
  const elements = packAny(data.data, dtype ?? (data.dtype === undefined ? undefined : toDType(data.dtype)));
  const count = data.shape.reduce((a, b) => a * b, 1);
  if (elements.shape[0] !== count) {
    throw new ShapeError(
      `${what}: expected ${count} elements for shape [${data.shape.join(", ")}], got ${elements.shape[0] ?? 0}`,
    );
  }
  return { ...elements, shape: data.shape };
}
