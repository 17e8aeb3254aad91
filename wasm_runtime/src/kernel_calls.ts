/** Calls of kernels in order, as every thread of a run makes its share of them. */

export type KernelFunction = (...args: number[]) => void;

/**
 * One call: its arguments are `n` words from number `first`. Every thread makes a parallel one, thread 0 the others.
 * `barrier`: all threads have made all calls before it.
 */
export interface Call {
  readonly first: number;
  readonly n: number;
  readonly parallel: boolean;
  readonly barrier: boolean;
}

/** `call(args[first], …)` with `n` arguments; a spread costs several times as much as a plain call. */
function invoke(call: KernelFunction, a: Int32Array, first: number, n: number): void {
  /* eslint-disable @typescript-eslint/no-non-null-assertion -- `first + n` is within `a` */
  switch (n) {
    case 1:
      call(a[first]!);
      return;
    case 2:
      call(a[first]!, a[first + 1]!);
      return;
    case 3:
      call(a[first]!, a[first + 1]!, a[first + 2]!);
      return;
    case 4:
      call(a[first]!, a[first + 1]!, a[first + 2]!, a[first + 3]!);
      return;
    case 5:
      call(a[first]!, a[first + 1]!, a[first + 2]!, a[first + 3]!, a[first + 4]!);
      return;
    case 6:
      call(a[first]!, a[first + 1]!, a[first + 2]!, a[first + 3]!, a[first + 4]!, a[first + 5]!);
      return;
    case 7:
      call(
        a[first]!,
        a[first + 1]!,
        a[first + 2]!,
        a[first + 3]!,
        a[first + 4]!,
        a[first + 5]!,
        a[first + 6]!,
      );
      return;
    case 8:
      call(
        a[first]!,
        a[first + 1]!,
        a[first + 2]!,
        a[first + 3]!,
        a[first + 4]!,
        a[first + 5]!,
        a[first + 6]!,
        a[first + 7]!,
      );
      return;
    default:
      call(...a.subarray(first, first + n));
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
export function runAll(
  calls: readonly Call[],
  functions: readonly (KernelFunction | undefined)[],
  args: Int32Array,
): void {
  let number = 0;
  try {
    for (const { first, n } of calls) {
      const call = functions[number];
      if (call !== undefined) invoke(call, args, first, n);
      number++;
    }
  } catch (cause) {
    throw new Trap(number, cause);
  }
}

/** Make this thread's share of the calls. `barrier` returns false when a thread trapped. Throws Trap. */
export function runShare(
  calls: readonly Call[],
  functions: readonly (KernelFunction | undefined)[],
  args: Int32Array,
  thread: number,
  barrier: () => boolean,
): void {
  let number = 0;
  try {
    for (const { first, n, parallel, barrier: hasBarrier } of calls) {
      if (hasBarrier && !barrier()) return;
      const call = functions[number];
      if (call !== undefined && (parallel || thread === 0)) invoke(call, args, first, n);
      number++;
    }
  } catch (cause) {
    throw new Trap(number, cause);
  }
}
