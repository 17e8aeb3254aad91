/** `LaunchList`: kernels to call in order, made ready once and run many times with new addresses. */

import { InternalError, ProgramError } from "./errors";

export type KernelFunction = (...args: number[]) => void;

/** A function in an instance. It keeps its module alive, so that the module is found again by its bytes. */
export interface Kernel {
  readonly name: string;
  readonly call: KernelFunction;
  readonly module: WebAssembly.Module;
}

/** `call(args[at], …)` with `n` arguments; a spread costs several times as much as a plain call. */
function invoke(call: KernelFunction, a: Int32Array, at: number, n: number): void {
  /* eslint-disable @typescript-eslint/no-non-null-assertion -- `at + n` is within `a` */
  switch (n) {
    case 1:
      call(a[at]!);
      return;
    case 2:
      call(a[at]!, a[at + 1]!);
      return;
    case 3:
      call(a[at]!, a[at + 1]!, a[at + 2]!);
      return;
    case 4:
      call(a[at]!, a[at + 1]!, a[at + 2]!, a[at + 3]!);
      return;
    case 5:
      call(a[at]!, a[at + 1]!, a[at + 2]!, a[at + 3]!, a[at + 4]!);
      return;
    case 6:
      call(a[at]!, a[at + 1]!, a[at + 2]!, a[at + 3]!, a[at + 4]!, a[at + 5]!);
      return;
    case 7:
      call(a[at]!, a[at + 1]!, a[at + 2]!, a[at + 3]!, a[at + 4]!, a[at + 5]!, a[at + 6]!);
      return;
    case 8:
      call(a[at]!, a[at + 1]!, a[at + 2]!, a[at + 3]!, a[at + 4]!, a[at + 5]!, a[at + 6]!, a[at + 7]!);
      return;
    default:
      call(...a.subarray(at, at + n));
  }
  /* eslint-enable @typescript-eslint/no-non-null-assertion */
}

/**
 * Calls in order. Each argument is one of `bases` plus a constant, modulo 2**32.
 *
 * Fill `bases` (addresses of buffers, then variables), then `run()`; both may be repeated.
 */
export class LaunchList {
  readonly bases: Uint32Array<ArrayBuffer>;
  readonly #kernels: Kernel[] = [];
  readonly #starts: number[] = [];
  readonly #sources: Uint32Array;
  readonly #offsets: Uint32Array;
  readonly #args: Int32Array;

  /** `plan` is, for each call: the kernel's number, how many arguments, then a source and an offset for each. */
  constructor(kernels: readonly Kernel[], plan: Uint32Array, nBases: number) {
    const sources: number[] = [];
    const offsets: number[] = [];
    const words = plan.values();
    const next = (): number => words.next().value ?? 0;
    for (let at = 0; at < plan.length;) {
      const kernel = kernels[next()];
      const n = next();
      if (kernel?.call.length !== n) {
        throw new ProgramError(
          `kernel ${kernel?.name ?? "?"}: expected ${kernel?.call.length ?? "a kernel with its"} arguments, got ${n}`,
        );
      }
      this.#kernels.push(kernel);
      this.#starts.push(sources.length);
      for (let i = 0; i < n; i++) {
        sources.push(next());
        offsets.push(next());
      }
      at += 2 + 2 * n;
    }
    this.bases = new Uint32Array(nBases);
    this.#sources = Uint32Array.from(sources);
    this.#offsets = Uint32Array.from(offsets);
    this.#args = new Int32Array(sources.length);
    this.#starts.push(sources.length);
  }

  /** Make every call. Throws InternalError when a kernel traps. */
  run(): void {
    const args = this.#args;
    const { bases } = this;
    for (let i = 0; i < args.length; i++) {
      args[i] = (bases[this.#sources[i] ?? 0] ?? 0) + (this.#offsets[i] ?? 0);
    }
    const starts = this.#starts;
    let number = 0;
    try {
      for (const kernel of this.#kernels) {
        const at = starts[number] ?? 0;
        invoke(kernel.call, args, at, (starts[number + 1] ?? at) - at);
        number++;
      }
    } catch (cause) {
      const name = this.#kernels[number]?.name ?? "?";
      throw new InternalError(`kernel ${name}: trapped: ${String(cause)}`, { cause });
    }
  }
}
