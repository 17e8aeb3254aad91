/** The samples of files of sound that a browser can decode. */

/** The samples of a file, at `rate`. Throws TypeError for a file that the browser cannot decode, and in a worker. */
export async function decodeSound(file: ArrayBuffer, rate: number): Promise<AudioBuffer> {
  if (typeof OfflineAudioContext === "undefined") {
    throw new TypeError("sound: expected samples (a Float32Array), as a worker decodes no files of sound");
  }
  try {
    return await new OfflineAudioContext(1, 1, rate).decodeAudioData(file);
  } catch (error) {
    throw new TypeError(`sound: expected a file that the browser decodes: ${String(error)}`, {
      cause: error,
    });
  }
}
