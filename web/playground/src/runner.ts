/**
 * The worker that runs what is written in the editor, so that no program can freeze the page: Stop ends the worker.
 *
 * JavaScript is compiled from text, which is `eval` to a Content-Security-Policy. The page's own policy does not
 * apply here but the one this file is served with: see `web/serve.mjs`. There is no document to get at.
 */

import { create, type Polygrad } from "polygrad";

import type { DeviceName } from "./devices";
import { described } from "./failures";
import { formatAll } from "./format";
import type { Failure, RunnerEvent, RunRequest } from "./messages";
import surroundings from "./surroundings.py";

type Compiled = (...args: unknown[]) => Promise<unknown>;
type Compile = new (...namesAndBody: string[]) => Compiled;

/** A program's import of polygrad, which is replaced by the session that is already open. */
const IMPORT = /^[ \t]*import\s*\{[^}]*\}\s*from\s*["']polygrad["'];?/gm;

const NAMES = ["create", "console", "plot"];

const CompileAsync = Object.getPrototypeOf(async () => Promise.resolve()) as { constructor: Compile };

function tell(event: RunnerEvent): void {
  postMessage(event);
}

const printed =
  (error: boolean) =>
  (...values: unknown[]): void => {
    tell({ kind: "output", text: `${formatAll(values)}\n`, error });
  };

/** The console that a program sees. */
const shown = {
  log: printed(false),
  info: printed(false),
  debug: printed(false),
  warn: printed(true),
  error: printed(true),
};

/** Add a point to the curve beside the output. */
function plot(value: unknown): void {
  const point = Number(value);
  if (!Number.isFinite(point)) throw new TypeError(`plot: expected a finite number, got ${String(value)}`);
  tell({ kind: "point", value: point });
}

// Python has it by `from js import plot`.
Object.assign(globalThis, { plot });

async function runJavaScript(pg: Polygrad, source: string): Promise<void> {
  // Lines keep their numbers. The block lets a program use the parameters' names for its own.
  const body = source.replace(IMPORT, (text) => text.replace(/[^\n]/g, " "));
  const compiled = new CompileAsync.constructor(...NAMES, `"use strict";{${body}\n}`);
  await compiled(() => Promise.resolve(pg), shown, plot);
}

/** A file beside the programs. */
async function fetched(name: string): Promise<{ name: string; bytes: Uint8Array }> {
  const response = await fetch(new URL(`programs/${name}`, import.meta.url));
  if (!response.ok) throw new Error(`expected programs/${name}, got status ${response.status}`);
  return { name, bytes: new Uint8Array(await response.arrayBuffer()) };
}

async function runPython(pg: Polygrad, { source, file, data }: RunRequest): Promise<void> {
  Object.assign(globalThis, { programFiles: await Promise.all(data.map(fetched)) });
  await pg.python(`${surroundings}\n_playground_enter(${JSON.stringify(file)})`);
  await pg.python(source);
  const pictures = JSON.parse((await pg.python("_playground_pictures()")) as string) as [string, string][];
  for (const [name, svg] of pictures) tell({ kind: "picture", name, svg });
}

/** Where in the program: engines put two lines before the body of a function made of text. */
function lineOf(stack: string): number | undefined {
  const found = /(?:<anonymous>|AsyncFunction):(\d+):\d+/.exec(stack);
  return found ? Number(found[1]) - 2 : undefined;
}

/** The part of a Python traceback that is about the program, and the line it ended in. */
function ofPython(traceback: string): { trace: string; line?: number } {
  const lines = [...traceback.matchAll(/File "<exec>", line (\d+)/g)];
  const last = lines.at(-1)?.[1];
  return { trace: traceback, ...(last !== undefined && { line: Number(last) }) };
}

function failureOf(error: unknown): Failure {
  const { name, message } = described(error);
  if (!(error instanceof Error)) return { name, message };
  const { cause, stack = "" } = error;
  if (typeof cause === "string") {
    const found = ofPython(cause);
    const line = found.line ?? lineOf(stack);
    return { name, message, trace: found.trace, ...(line !== undefined && { line }) };
  }
  if (error instanceof EvalError) {
    const remedy = "JavaScript needs 'unsafe-eval' in the policy of runner.mjs alone; Python runs without";
    return { name, message: `the server's Content-Security-Policy forbids it: ${remedy}` };
  }
  const line = lineOf(stack);
  return { name, message, ...(line !== undefined && { line }) };
}

/** The device that programs run on: the page names the worker by it. */
const { name: device } = globalThis as unknown as { readonly name: DeviceName };

const starting = create({
  device,
  stdout: (text) => {
    tell({ kind: "output", text, error: false });
  },
  stderr: (text) => {
    tell({ kind: "output", text, error: true });
  },
  onProgress: ({ stage, fraction }) => {
    tell({ kind: "progress", stage, fraction });
  },
});

starting
  .then(async (pg) => {
    tell({ kind: "ready", device: pg.Device.default, threads: await pg.getNumThreads() });
  })
  .catch((error: unknown) => {
    tell({ kind: "unusable", message: String(error) });
  });

async function run(request: RunRequest): Promise<void> {
  let started = performance.now();
  const seconds = (): number => (performance.now() - started) / 1e3;
  try {
    const pg = await starting;
    started = performance.now();
    pg.Tensor.training = false; // the last program may have left it true
    pg.Device.default = device; // or chosen another device
    await (request.language === "python" ? runPython(pg, request) : runJavaScript(pg, request.source));
    tell({ kind: "done", seconds: seconds() });
  } catch (error) {
    tell({ kind: "done", seconds: seconds(), failure: failureOf(error) });
  }
}

addEventListener("message", (event: MessageEvent<RunRequest>) => {
  void run(event.data);
});
