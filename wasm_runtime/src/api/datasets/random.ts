/**
 * Random numbers that are a function of integers, such as a seed and a position: so any order of any epoch can be had again.
 * MurmurHash3 by Austin Appleby, for 32 bits, with a seed of 0.
 */

/** The hash of integers, each as 8 bytes. */
export function hashOf(...integers: readonly number[]): number {
  let hash = 0;
  for (const x of integers) {
    for (const word of [x | 0, Math.floor(x / 2 ** 32) | 0]) {
      hash ^= Math.imul(rotate(Math.imul(word, 0xcc9e2d51), 15), 0x1b873593);
      hash = (Math.imul(rotate(hash, 13), 5) + 0xe6546b64) | 0;
    }
  }
  hash ^= 8 * integers.length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function rotate(x: number, bits: number): number {
  return (x << bits) | (x >>> (32 - bits));
}

/** A number from 0 up to but not including 1. */
export function uniformOf(...integers: readonly number[]): number {
  return hashOf(...integers) / 2 ** 32;
}

/** Shuffle an array in place (Fisher and Yates), by integers. */
export function shuffle(items: unknown[], ...integers: readonly number[]): void {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(uniformOf(...integers, i) * (i + 1));
    [items[i], items[j]] = [items[j], items[i]];
  }
}
