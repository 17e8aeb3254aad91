/**
 * Sentencepiece's table of replacements (`Precompiled` in tokenizer.json): a trie of bytes in a double array, as
 * darts-clone lays it out, and the texts that its leaves point at. `@huggingface/tokenizers` has an approximation.
 */

const HAS_LEAF = 1 << 8;
const VALUE = 0x7fffffff;
const LABEL = 0x800000ff;
/** Longer clusters of characters are looked up character by character. */
const LONGEST_CLUSTER = 5;

function offsetOf(unit: number): number {
  return (unit >>> 10) << ((unit & (1 << 9)) >>> 6);
}

/** Bytes in base64, which the host has checked. */
function decodeBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export class Charsmap {
  readonly #units: Uint32Array;
  readonly #texts: Uint8Array;
  readonly #segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder();

  /** Throws an Error when the table is shorter than it says. */
  constructor(base64: string) {
    const bytes = decodeBase64(base64);
    const view = new DataView(bytes.buffer);
    const size = bytes.length < 4 ? -1 : view.getUint32(0, true);
    if (size < 0 || size % 4 !== 0 || 4 + size > bytes.length)
      throw new Error("a damaged precompiled_charsmap");
    this.#units = Uint32Array.from({ length: size / 4 }, (_, i) => view.getUint32(4 + 4 * i, true));
    this.#texts = bytes.subarray(4 + size);
  }

  normalize(text: string): string {
    let out = "";
    for (const { segment } of this.#segmenter.segment(text)) {
      const bytes = this.#encoder.encode(segment);
      const whole = bytes.length <= LONGEST_CLUSTER ? this.#find(bytes) : undefined;
      if (whole !== undefined) out += whole;
      else for (const character of segment) out += this.#find(this.#encoder.encode(character)) ?? character;
    }
    return out;
  }

  /** The replacement of `bytes`: that of their shortest prefix in the table. */
  #find(bytes: Uint8Array): string | undefined {
    let at = offsetOf(this.#units[0] ?? 0);
    for (const byte of bytes) {
      if (byte === 0) return undefined;
      at ^= byte;
      const unit = this.#units[at];
      if (unit === undefined || (unit & LABEL) >>> 0 !== byte) return undefined;
      at ^= offsetOf(unit);
      if (unit & HAS_LEAF) {
        const start = (this.#units[at] ?? VALUE) & VALUE;
        const end = this.#texts.indexOf(0, start);
        return this.#decoder.decode(this.#texts.subarray(start, end < 0 ? undefined : end));
      }
    }
    return undefined;
  }
}
