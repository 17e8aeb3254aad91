/** `BindGroups`: a device's bind groups, cached as long as their buffers live. */

import type { Range } from "./steps";

const KEPT = 4096;

export class BindGroups {
  /** How many bind groups were made. */
  made = 0;
  /** Least recently used first. */
  readonly #groups = new Map<string, { readonly group: GPUBindGroup; readonly buffers: readonly number[] }>();
  readonly #keys = new Map<number, Set<string>>();

  constructor(
    private readonly make: (buffers: readonly number[], ranges: readonly Range[]) => GPUBindGroup,
  ) {}

  /** The bind group of ranges, whose entries are indices of `table`. */
  get(ranges: readonly Range[], table: Uint32Array): GPUBindGroup {
    const buffers = ranges.map(({ entry }) => table[entry] ?? 0);
    const key = ranges.map(({ offset, nbytes }, i) => `${buffers[i] ?? 0}+${offset}:${nbytes}`).join(" ");
    const cached = this.#groups.get(key);
    if (cached !== undefined) {
      this.#groups.delete(key);
      this.#groups.set(key, cached);
      return cached.group;
    }
    const group = this.make(buffers, ranges);
    this.made++;
    this.#groups.set(key, { group, buffers });
    for (const buffer of buffers) {
      const keys = this.#keys.get(buffer);
      if (keys === undefined) this.#keys.set(buffer, new Set([key]));
      else keys.add(key);
    }
    const [oldest] = this.#groups.keys();
    if (this.#groups.size > KEPT && oldest !== undefined) this.#forget(oldest);
    return group;
  }

  /** Forget the bind groups of a destroyed buffer. */
  drop(buffer: number): void {
    for (const key of [...(this.#keys.get(buffer) ?? [])]) this.#forget(key);
  }

  #forget(key: string): void {
    for (const buffer of this.#groups.get(key)?.buffers ?? []) {
      const keys = this.#keys.get(buffer);
      keys?.delete(key);
      if (keys?.size === 0) this.#keys.delete(buffer);
    }
    this.#groups.delete(key);
  }
}
