/** The messages between the page and the worker that runs the editor's programs. */

export type Language = "javascript" | "python";

/** From the page. */
export interface RunRequest {
  readonly language: Language;
  readonly source: string;
  /** The name of the program, and the files beside it that it reads. */
  readonly file: string;
  readonly data: readonly string[];
}

/** An error of a program: `line` where it is known, counted from 1. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly line?: number;
  readonly trace?: string;
}

/** From the worker. */
export type RunnerEvent =
  | { readonly kind: "progress"; readonly stage: string; readonly fraction: number }
  | { readonly kind: "ready"; readonly device: string; readonly threads: number }
  | { readonly kind: "unusable"; readonly message: string }
  | { readonly kind: "output"; readonly text: string; readonly error: boolean }
  | { readonly kind: "point"; readonly value: number }
  | { readonly kind: "picture"; readonly name: string; readonly svg: string }
  | { readonly kind: "done"; readonly seconds: number; readonly failure?: Failure };
