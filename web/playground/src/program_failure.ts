/** Errors of programs: what happened, and in which line. */

import { described } from "./failures";
import { lineIn } from "./javascript_program";
import type { Failure } from "./messages";

/** An error of a program, which is the file `file` to Python. */
export function failureOf(error: unknown, file: string): Failure {
  const { name, message } = described(error);
  if (!(error instanceof Error)) return { name, message };
  const { cause, stack = "" } = error;
  if (error instanceof EvalError) {
    const remedy = "JavaScript needs 'unsafe-eval' in the policy of runner.mjs alone; Python runs without";
    return { name, message: `the server's Content-Security-Policy forbids it: ${remedy}` };
  }
  const trace = typeof cause === "string" ? cause : undefined;
  const line = (trace === undefined ? undefined : lineOfPython(trace, file)) ?? lineIn(stack);
  return { name, message, ...(line !== undefined && { line }), ...(trace !== undefined && { trace }) };
}

/** The line of the program in which a traceback ends. */
function lineOfPython(traceback: string, file: string): number | undefined {
  const lines = [...traceback.matchAll(/File "(<\w+>)", line (\d+)/g)].filter(([, name]) => name === file);
  const last = lines.at(-1)?.[2];
  return last === undefined ? undefined : Number(last);
}
