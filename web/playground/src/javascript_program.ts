/** Programs in JavaScript, compiled from text, which is `eval` to a Content-Security-Policy: see `runner.ts`. */

type Compiled = (...args: unknown[]) => Promise<unknown>;
type Compile = new (...namesAndBody: string[]) => Compiled;

const CompileAsync = Object.getPrototypeOf(async () => Promise.resolve()) as { constructor: Compile };

/** A program's import of polygrad, which is replaced by the session that is already open. */
const IMPORT = /^[ \t]*import\s*\{[^}]*\}\s*from\s*["']polygrad["'];?/gm;

/** Run a program to which the keys of `names` are known. What it returns is the result. */
export async function runProgram(source: string, names: Readonly<Record<string, unknown>>): Promise<unknown> {
  // Lines keep their numbers. The block lets a program use the parameters' names for its own.
  const body = source.replace(IMPORT, (text) => text.replace(/[^\n]/g, " "));
  const compiled = new CompileAsync.constructor(...Object.keys(names), `"use strict";{${body}\n}`);
  return compiled(...Object.values(names));
}

/**
 * The line of the program that runs now, counted from 1; undefined where none does. Engines put two lines before the
 * body of a function made of text.
 */
export function lineIn(stack: string): number | undefined {
  const found = /(?:<anonymous>|AsyncFunction):(\d+):\d+/.exec(stack);
  return found ? Number(found[1]) - 2 : undefined;
}
