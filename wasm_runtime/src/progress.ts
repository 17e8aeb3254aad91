/** Progress, in the one form in which everything reports it. */

/** How far a start or a file has come. */
export interface Progress {
  /**
   * Of a start: `files` are fetched, Python is at its `start`, polygrad's `import`, and it is `ready`. `download`: a file
   * arrives.
   */
  readonly stage: "files" | "start" | "import" | "ready" | "download";
  /**
   * How much is done, from 0 to 1: of a start by the time that stages usually take, of a file by bytes. It stays 0 until
   * the end for a file whose length the server does not send.
   */
  readonly fraction: number;
  /** The bytes of a file that have arrived. */
  readonly loaded?: number;
  /** The length of a file in bytes, where it is known. */
  readonly total?: number | undefined;
}

export type OnProgress = (progress: Progress) => void;
