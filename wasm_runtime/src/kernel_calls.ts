/** Calls of kernels in order. Every thread of a run makes its share of them. */

import type { Barrier } from "./barrier";
import { PARTS_PER_THREAD } from "./shared_words";

export type KernelFunction = (...args: number[]) => void;

/**
 * One call. Its arguments are `n` words from number `first`. Every thread makes a parallel call, thread 0 the others.
 * `barrier`: all threads have to make all earlier calls first. `part`: the word for the number of the part; the call is
 * made once for each part, by the thread that takes it. `line`: the line of the call's counters.
 */
export interface Call {
  readonly first: number;
  readonly n: number;
  readonly parallel: boolean;
  readonly barrier: boolean;
  readonly part?: number;
  readonly line: number;
}

/** The threads of a run, as one of them sees it. */
export interface Team {
  readonly barrier: Barrier;
  readonly thread: number;
  readonly threads: number;
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

/** A call trapped: its index in the list, and the engine's message. */
export class Trap extends Error {
  constructor(
    readonly number: number,
    cause: unknown,
  ) {
    super(String(cause), { cause });
  }
}

/** Make all calls on the only thread. Throws Trap. */
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

/**
 * Make a call for one part after the other: first this thread's parts, which are neighbours, then parts that other
 * threads have not begun. So when a thread loses its processor to another process, only its current part is late.
 */
function runParts(
  call: KernelFunction,
  args: Int32Array,
  { first, n, line }: Call,
  place: number,
  { barrier, thread, threads }: Team,
): void {
  for (let turn = 0; turn < threads; turn++) {
    const owner = (thread + turn) % threads;
    for (;;) {
      const taken = barrier.takePart(line, owner);
      if (taken >= PARTS_PER_THREAD) break;
      args[place] = owner * PARTS_PER_THREAD + taken;
      invoke(call, args, first, n);
    }
  }
}

/** Make this thread's share of the calls. It ends early when another thread has trapped. Throws Trap. */
export function runShare(
  calls: readonly Call[],
  functions: readonly (KernelFunction | undefined)[],
  args: Int32Array,
  team: Team,
): void {
  let number = 0;
  try {
    for (const call of calls) {
      if (call.barrier && !team.barrier.wait(team.thread, team.threads)) return;
      const kernel = functions[number];
      if (kernel !== undefined) {
        if (call.part !== undefined) runParts(kernel, args, call, call.part, team);
        else if (call.parallel || team.thread === 0) invoke(kernel, args, call.first, call.n);
      }
      number++;
    }
  } catch (cause) {
    throw new Trap(number, cause);
  }
}
