/** Progress, in the one form in which everything reports it. */

/** How far a start, a file or a training run has come. */
export interface Progress {
  /**
   * Of a start: `files` are fetched, Python is at its `start`, polygrad's `import`, and it is `ready`. `download`: a file
   * arrives. `training`: of a model.
   */
  readonly stage: "files" | "start" | "import" | "ready" | "download" | "training";
  /**
   * How much is done, from 0 to 1: of a start by the time that stages usually take, of a file by bytes, of training by
   * steps. It stays 0 until
   * the end for a file whose length the server does not send.
   */
  readonly fraction: number;
  /** The bytes of a file that have arrived; the steps that were taken. */
  readonly loaded?: number;
  /** How many of these bytes came from the cache, where any did. */
  readonly cached?: number;
  /** The length of a file in bytes, where it is known; the number of all steps. */
  readonly total?: number | undefined;
  /** What training measured last, by name: means of the epoch so far, and validation of the last epoch. */
  readonly values?: Readonly<Record<string, number>>;
}

export type OnProgress = (progress: Progress) => void;

/** Progress in words: what is done of what, and what was measured. */
export function describeProgress({ stage, loaded, total, values = {} }: Progress): string {
  const isFile = stage === "download" || stage === "files";
  const amount = (x: number): string => (isFile ? (x / 1e6).toFixed(1) : String(x));
  const counts = [loaded, total].filter((x) => x !== undefined).map(amount);
  const measured = Object.entries(values).map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`);
  const done = `${counts.join("/")}${isFile ? " MB" : ""}`;
  return [counts.length > 0 ? `${stage} ${done}` : stage, ...measured].join(", ");
}
