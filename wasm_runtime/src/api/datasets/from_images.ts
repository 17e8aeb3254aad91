/** `nn.data.fromImages`: pictures and their classes as examples. */

import { pack, packArray } from "../data";
import { ArgumentError } from "../generated/errors";
import type { Tensor } from "../generated/tensor";
import { checkOptions, type OptionNames } from "../options";
import { pixelsOf, type ImageInput } from "../pictures";
import type { Session } from "../session";
import type { Host } from "../sources";
import { Examples } from "./examples";
import { pairOf } from "./from_examples";
import { ItemSource, type ItemsOf } from "./item_source";
import { resize } from "./resize";

/** A picture and its class: a number, or one of the option `classes`. */
export type LabelledImage = readonly [image: Exclude<ImageInput, Tensor>, label: number | string];

export interface ImagesOptions {
  /** The size of inputs: pictures of another size are stretched. */
  readonly width: number;
  readonly height: number;
  /** 3 for red, green and blue, 1 for grey: 3 unless given. */
  readonly channels?: 1 | 3;
  /** The texts of labels in the order of their numbers. */
  readonly classes?: readonly string[];
  /** From how many items the next one is drawn: 1,024 unless given. The items of an array are shuffled as a whole. */
  readonly shuffleBuffer?: number;
}

const OPTIONS: OptionNames<ImagesOptions> = {
  width: true,
  height: true,
  channels: true,
  classes: true,
  shuffleBuffer: true,
};

export function fromImages(
  session: Session,
  host: Host,
  source: ItemsOf<LabelledImage>,
  options: ImagesOptions,
): Examples {
  checkOptions("fromImages", options, OPTIONS);
  const { width, height, channels = 3, classes, shuffleBuffer } = options;
  for (const [name, size] of Object.entries({ width, height })) {
    if (!Number.isInteger(size) || size < 1) {
      throw new ArgumentError(`fromImages: ${name}: expected an integer of at least 1, got ${String(size)}`);
    }
  }
  const decode = async (item: LabelledImage) => {
    const [image, label] = pairOf(item, "fromImages: expected items [image, label]") as LabelledImage;
    const pixels = await pixelsOf(session, host, image, "fromImages");
    const elements = packArray(resize(pixels, width, height, channels));
    return [
      { ...elements, shape: [channels, height, width] },
      pack(classOf(label, classes), "int32"),
    ] as const;
  };
  return new Examples(session, new ItemSource(source, "fromImages"), decode, shuffleBuffer);
}

function classOf(label: number | string, classes: readonly string[] | undefined): number {
  if (typeof label === "number" && Number.isInteger(label)) return label;
  const index = classes?.indexOf(String(label)) ?? -1;
  if (index >= 0) return index;
  const expected = classes === undefined ? "an integer" : `an integer or one of ${classes.join(", ")}`;
  throw new ArgumentError(`fromImages: label: expected ${expected}, got ${JSON.stringify(label)}`);
}
