/** What `kernels.py` tells of a program's kernels. */

/** A kernel, and what one launch of it has to do. */
export interface Kernel {
  readonly name: string;
  readonly codeBytes: number;
  readonly parallel: boolean;
  readonly flops: number;
  readonly bytes: number;
}

/** A line of the program; `gradient`: the gradient of what the line computes. */
export interface Place {
  readonly line: number;
  readonly gradient: boolean;
}

export interface Launch {
  /** Its place among the kernels. */
  readonly kernel: number;
  readonly seconds: number;
  /** Role, dtype and size of each; the first is written. */
  readonly buffers: readonly string[];
  /** The lines that made what it computes, that of its result first. */
  readonly places: readonly Place[];
}

export interface Launched {
  readonly what: string;
  readonly rounds: number;
  /** The time of a whole call, all launches together. */
  readonly seconds: number;
  /** The most operations on float32 that the device does in a second; null: not measured. */
  readonly peak: number | null;
  readonly kernels: readonly Kernel[];
  readonly launches: readonly Launch[];
}

export const KINDS = ["memory", "loop", "arithmetic", "reduction", "index", "constant", "structure"] as const;
export type Kind = (typeof KINDS)[number];

export interface Node {
  readonly op: string;
  readonly dtype: string;
  readonly kind: Kind;
  /** The numbers of its sources. */
  readonly sources: readonly number[];
}

/** A kernel after a pass, or, without a name, before the first; of one that a pass left alone there is no more. */
export type Stage =
  | { readonly name: string; readonly changed: false }
  | {
      readonly name: string;
      readonly changed: true;
      /** The numbers of its nodes, sources first. */
      readonly order: readonly number[];
      /** What there is to say of each. */
      readonly details: readonly string[];
      readonly listing: string;
    };

export interface Explained {
  readonly nodes: readonly Node[];
  readonly stages: readonly Stage[];
  readonly device: string;
  /** Its code in the language of that device. */
  readonly source: string;
}

/** A kernel as some Opts, or some device, make it. */
export interface Variant {
  readonly opts: string;
  readonly source: string;
  /** Of the fastest of some runs; null on a device that is not here. */
  readonly seconds: number | null;
}

/** A kernel at one point of its way. */
export interface Graph {
  readonly nodes: readonly Node[];
  readonly order: readonly number[];
  readonly details: readonly string[];
  readonly listing: string;
}

/** The kernel after stage number `at`. */
export function graphAt({ nodes, stages }: Explained, at: number): Graph {
  for (let i = at; i >= 0; i--) {
    const stage = stages[i];
    if (stage?.changed) return { nodes, order: stage.order, details: stage.details, listing: stage.listing };
  }
  throw new Error("internal: expected a kernel before its first pass, got none");
}
