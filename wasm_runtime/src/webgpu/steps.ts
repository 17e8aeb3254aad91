/** Steps of a command list, dispatches and copies: read from numbers, to be encoded. */

import { ProgramError } from "../errors";

/** `nbytes` from byte `offset` of the buffer in entry `entry` of a run's table. */
export interface Range {
  readonly entry: number;
  readonly offset: number;
  readonly nbytes: number;
}

/** A grid of workgroups. `grid`: the index of its three numbers among the grid words of a run. */
export interface DispatchStep {
  readonly kind: "dispatch";
  readonly pipeline: number;
  readonly grid: number;
  /** Storage buffers, then the uniform buffer. */
  readonly ranges: readonly Range[];
  /** The bind group of the last run's table. */
  group?: GPUBindGroup;
  /** The pipeline, after its first use. */
  made?: GPUComputePipeline | undefined;
}

export interface CopyStep {
  readonly kind: "copy";
  readonly source: Range;
  readonly target: Range;
}

export type Step = DispatchStep | CopyStep;

/** The first number of a step: its kind. */
export const DISPATCH = 0;
const COPY = 1;

/**
 * Steps from numbers. A step is `DISPATCH, pipeline, grid, count` and `count` ranges, or `COPY` and two ranges. A range
 * is an entry, an offset and a size.
 */
export function readSteps(numbers: Uint32Array): Step[] {
  const steps: Step[] = [];
  let at = 0;
  const next = (): number => {
    const value = numbers[at++];
    if (value === undefined)
      throw new ProgramError(`steps: expected whole steps, got ${numbers.length} numbers`);
    return value;
  };
  const range = (): Range => ({ entry: next(), offset: next(), nbytes: next() });
  while (at < numbers.length) {
    const kind = next();
    if (kind === DISPATCH) {
      const [pipeline, grid, count] = [next(), next(), next()];
      steps.push({ kind: "dispatch", pipeline, grid, ranges: Array.from({ length: count }, range) });
    } else if (kind === COPY) {
      steps.push({ kind: "copy", source: range(), target: range() });
    } else {
      throw new ProgramError(`steps: expected ${DISPATCH} or ${COPY}, got ${kind}`);
    }
  }
  return steps;
}
