/** The pixels of images that a page can draw. */

/** The pixels of an image at its own size. Throws TypeError for an object that cannot be drawn, or has no pixels yet. */
export function pixelsOf(image: object): ImageData {
  const source = image as CanvasImageSource;
  const [width, height] =
    typeof HTMLVideoElement !== "undefined" && image instanceof HTMLVideoElement // not in a worker
      ? [image.videoWidth, image.videoHeight]
      : typeof HTMLImageElement !== "undefined" && image instanceof HTMLImageElement
        ? [image.naturalWidth, image.naturalHeight]
        : [(image as ImageBitmap).width, (image as ImageBitmap).height];
  if (!(width > 0 && height > 0)) {
    throw new TypeError(`fromImage: expected an image with pixels, got one of ${width} x ${height}`);
  }
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  if (context === null)
    throw new TypeError("fromImage: expected a browser that draws, got one without canvas");
  context.drawImage(source, 0, 0, width, height);
  return context.getImageData(0, 0, width, height);
}

/** The pixels of a file of a picture. Throws TypeError for a file that the browser cannot decode. */
export async function decodeImage(file: Blob): Promise<ImageData> {
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch (error) {
    throw new TypeError(`image: expected a picture that the browser decodes: ${String(error)}`, {
      cause: error,
    });
  }
  try {
    return pixelsOf(bitmap);
  } finally {
    bitmap.close();
  }
}
