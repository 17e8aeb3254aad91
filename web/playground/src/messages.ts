/** The messages between the page and a worker that runs programs, those of the editor or one whose kernels are shown. */

export type Language = "javascript" | "python";

/** From the page: run a program. */
export interface RunRequest {
  readonly kind: "run";
  readonly language: Language;
  readonly source: string;
  /** The name of the program, and the files beside it that it reads. */
  readonly file: string;
  readonly data: readonly string[];
}

/** From the page: find the kernels of a program. */
export interface InspectRequest {
  readonly kind: "inspect";
  readonly language: Language;
  readonly source: string;
  /** Where the expression that is looked at begins and ends in a source in JavaScript. */
  readonly result: readonly [from: number, to: number];
}

/** From the page: call a function of `kernels.py`, which answers in JSON. */
export interface AskRequest {
  readonly kind: "ask";
  readonly function: "explained" | "variant";
  readonly args: readonly (string | number | null)[];
}

export type Request = RunRequest | InspectRequest | AskRequest;

/** An error of a program: `line` where it is known, counted from 1. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly line?: number;
  readonly trace?: string;
}

/** From the worker, while it starts. */
export type StartEvent =
  | { readonly kind: "progress"; readonly stage: string; readonly fraction: number }
  | { readonly kind: "ready"; readonly device: string; readonly threads: number };

/** From the worker: what became of a request, and of the start where it failed. */
export type RunnerEvent =
  | { readonly kind: "unusable"; readonly message: string }
  | { readonly kind: "output"; readonly text: string; readonly error: boolean }
  | { readonly kind: "point"; readonly value: number }
  | { readonly kind: "picture"; readonly name: string; readonly svg: string }
  | { readonly kind: "done"; readonly seconds: number; readonly failure?: Failure }
  | { readonly kind: "answer"; readonly value: unknown }
  | { readonly kind: "refused"; readonly failure: Failure };
