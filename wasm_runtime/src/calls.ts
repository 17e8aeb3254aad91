/** Calls of kernels in order, as every thread of a run makes its part of them. */

export type KernelFunction = (...args: number[]) => void;

/** One call: its arguments are `n` words from `at`. A parallel one is made by every thread. */
export interface Call {
  readonly at: number;
  readonly n: number;
  readonly parallel: boolean;
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

/** A call trapped: which of the list, and what the engine said. */
export class Trap extends Error {
  constructor(
    readonly number: number,
    cause: unknown,
  ) {
    super(String(cause), { cause });
  }
}

/** Make all calls; the only thread. Throws Trap. */
export function makeAll(
  calls: readonly Call[],
  functions: readonly (KernelFunction | undefined)[],
  args: Int32Array,
): void {
  let number = 0;
  try {
    for (const { at, n } of calls) {
      const call = functions[number];
      if (call !== undefined) invoke(call, args, at, n);
      number++;
    }
  } catch (cause) {
    throw new Trap(number, cause);
  }
}

/**
 * Make this thread's part of the calls: the parallel ones, and as thread 0 all. Between two neighbours of
 * which one is parallel, the threads meet; `meet` is false when one of them trapped. Throws Trap.
 */
export function makeShare(
  calls: readonly Call[],
  functions: readonly (KernelFunction | undefined)[],
  args: Int32Array,
  thread: number,
  meet: () => boolean,
): void {
  let number = 0;
  let before = false;
  try {
    for (const { at, n, parallel } of calls) {
      if (number > 0 && (parallel || before) && !meet()) return;
      const call = functions[number];
      if (call !== undefined && (parallel || thread === 0)) invoke(call, args, at, n);
      before = parallel;
      number++;
    }
  } catch (cause) {
    throw new Trap(number, cause);
  }
}
