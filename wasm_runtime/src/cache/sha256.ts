/** SHA-256, also of bytes that arrive in pieces (FIPS 180-4), as `crypto.subtle` takes whole messages alone. */

const BLOCK = 64; // bytes

/** The first `count` primes. */
function primes(count: number): number[] {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime !== 0)) found.push(n);
  return found;
}

/** The first 32 bits of the fraction of `x`. */
const fractionBits = (x: number): number => ((x - Math.floor(x)) * 2 ** 32) | 0;

const CONSTANTS = Int32Array.from(primes(64), (prime) => fractionBits(Math.cbrt(prime)));
const START = Int32Array.from(primes(8), (prime) => fractionBits(Math.sqrt(prime)));

/** A digest of bytes that arrive in pieces; Node's `createHash` makes one, too. */
export interface Hash {
  update(bytes: Uint8Array): unknown;
  /** The digest of all bytes. Nothing can be added afterwards. */
  digest(encoding: "hex"): string;
}

export class Sha256 implements Hash {
  readonly #state = START.slice();
  readonly #words = new Int32Array(64);
  /** The bytes of a block that is not complete. */
  readonly #rest = new Uint8Array(BLOCK);
  #length = 0;

  update(bytes: Uint8Array): void {
    const filled = this.#length % BLOCK;
    this.#length += bytes.length;
    let at = 0;
    if (filled > 0) {
      at = Math.min(BLOCK - filled, bytes.length);
      this.#rest.set(bytes.subarray(0, at), filled);
      if (filled + at < BLOCK) return;
      this.#compress(this.#rest, 0);
    }
    for (; at + BLOCK <= bytes.length; at += BLOCK) this.#compress(bytes, at);
    this.#rest.set(bytes.subarray(at));
  }

  digest(): string {
    const length = this.#length;
    // One bit, zeros, and the length in bits, up to the end of a block.
    const zeros = (2 * BLOCK - 9 - (length % BLOCK)) % BLOCK;
    const padding = new Uint8Array(1 + zeros + 8);
    padding[0] = 0x80;
    new DataView(padding.buffer).setBigUint64(padding.length - 8, BigInt(length) * 8n);
    this.update(padding);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #compress(bytes: Uint8Array, at: number): void {
    const [words, state] = [this.#words, this.#state];
    for (let i = 0; i < 16; i++) {
      const j = at + 4 * i;
      words[i] =
        ((bytes[j] ?? 0) << 24) |
        ((bytes[j + 1] ?? 0) << 16) |
        ((bytes[j + 2] ?? 0) << 8) |
        (bytes[j + 3] ?? 0);
    }
    for (let i = 16; i < 64; i++) {
      const x = words[i - 15] ?? 0;
      const y = words[i - 2] ?? 0;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      words[i] = ((words[i - 16] ?? 0) + s0 + (words[i - 7] ?? 0) + s1) | 0;
    }
    // Destructuring, with its iterator, takes most of the time here.
    let a = state[0] ?? 0;
    let b = state[1] ?? 0;
    let c = state[2] ?? 0;
    let d = state[3] ?? 0;
    let e = state[4] ?? 0;
    let f = state[5] ?? 0;
    let g = state[6] ?? 0;
    let h = state[7] ?? 0;
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (CONSTANTS[i] ?? 0) + (words[i] ?? 0)) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    const added = [a, b, c, d, e, f, g, h];
    for (let i = 0; i < 8; i++) state[i] = ((state[i] ?? 0) + (added[i] ?? 0)) | 0;
  }
}
