/** Sounds of every kind as samples. */

import { ArgumentError } from "./generated/errors";
import { readAll, type Host } from "./sources";

/** Samples of a sound, as a page's AudioBuffer has them. */
export interface DecodedSound {
  readonly sampleRate: number;
  readonly numberOfChannels: number;
  getChannelData(channel: number): Float32Array;
}

/** A sound: samples, 16,000 a second; an AudioBuffer of that rate; in a page also a File, or its address. */
export type SoundInput = Float32Array | DecodedSound | Blob | URL | string;

/** The samples of a sound, the mean of its channels. Rejects with ArgumentError for what is no sound. */
export async function samplesOf(
  host: Host,
  sound: SoundInput,
  rate: number,
  signal: AbortSignal | undefined,
): Promise<Float32Array> {
  if (sound instanceof Float32Array) return sound;
  if (typeof sound === "string" || sound instanceof URL || sound instanceof Blob) {
    if (host.decodeSound === undefined) {
      throw new ArgumentError(
        `pipeline: sound: expected a Float32Array of ${rate} samples a second, as only pages decode files of sound`,
      );
    }
    const bytes = await readAll(host, sound, "pipeline", { signal });
    return mean(await host.decodeSound(bytes.buffer, rate));
  }
  if (typeof sound !== "object" || !("getChannelData" in sound)) {
    throw new ArgumentError(`pipeline: sound: expected a Float32Array of samples, got a ${typeof sound}`);
  }
  if (sound.sampleRate !== rate) {
    throw new ArgumentError(`pipeline: sound: expected ${rate} samples a second, got ${sound.sampleRate}`);
  }
  return mean(sound);
}

function mean(sound: DecodedSound): Float32Array {
  const channels = Array.from({ length: sound.numberOfChannels }, (_, i) => sound.getChannelData(i));
  const [first = new Float32Array()] = channels;
  if (channels.length < 2) return first;
  return first.map((_, i) => channels.reduce((sum, channel) => sum + (channel[i] ?? 0), 0) / channels.length);
}
