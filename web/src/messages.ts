/** What the page and the worker say to each other. */

import type { Progress, Python } from "../../loader/src/polygrad";
import type { LoadOptions } from "./load";

/** Options that can be sent; output comes back as messages. */
export type WorkerOptions = Omit<LoadOptions, "stdout" | "stderr" | "onProgress">;

export type Method = keyof Python;

export type Request =
  | { readonly id: number; readonly method: "load"; readonly args: readonly [WorkerOptions] }
  | { readonly id: number; readonly method: Method; readonly args: readonly unknown[] };

export type Reply =
  | { readonly kind: "output"; readonly stream: "stdout" | "stderr"; readonly text: string }
  | { readonly kind: "progress"; readonly progress: Progress }
  | { readonly kind: "result"; readonly id: number; readonly value: unknown }
  | { readonly kind: "error"; readonly id: number; readonly name: string; readonly message: string };
