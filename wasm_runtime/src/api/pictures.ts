/** Pictures of every kind as tensors. */

import { ArgumentError } from "./generated/errors";
import { Tensor } from "./generated/tensor";
import { tensorOfPixels, type Pixels } from "./make";
import type { Session } from "./session";
import { readAll, type Host } from "./sources";
import type { ImageSource } from "./tensor_base";

/**
 * A picture: ImageData or other pixels; a tensor, uint8 of shape [height, width, channels], or floats of shape [channels,
 * height, width], which go to the model as they are; in a page also a canvas, a video, an image element, an ImageBitmap, the
 * File of a picture, or its address.
 */
export type ImageInput = Tensor | ImageSource | Pixels | Blob | URL | string;

/** A picture as a tensor, and whether it was made here. Rejects with ArgumentError for what is no picture. */
export async function pictureOf(
  session: Session,
  host: Host,
  image: ImageInput,
): Promise<{ tensor: Tensor; isOwn: boolean }> {
  if (image instanceof Tensor) return { tensor: image, isOwn: false };
  const pixels = await pixelsOf(session, host, image, "pipeline");
  return { tensor: tensorOfPixels(session, pixels, 3), isOwn: true };
}

/** The pixels of a picture. `what`: the name of the calling function, for errors. Rejects with ArgumentError. */
export async function pixelsOf(
  session: Session,
  host: Host,
  image: Exclude<ImageInput, Tensor>,
  what: string,
): Promise<Pixels> {
  if (typeof image === "string" || image instanceof URL || image instanceof Blob) {
    if (host.decodeImage === undefined) {
      throw new ArgumentError(
        `${what}: image: expected pixels ({ data, width, height }) or a tensor, as only pages decode pictures`,
      );
    }
    const file = image instanceof Blob ? image : new Blob([await readAll(host, image, what)]);
    return host.decodeImage(file);
  }
  if (Object(image) !== image) {
    throw new ArgumentError(`${what}: image: expected a picture, got a ${typeof image}`);
  }
  return "data" in image ? image : session.pixels(image);
}
