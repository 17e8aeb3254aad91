/**
 * The worker that runs what is written in the editor, so that no program can freeze the page: Stop ends the worker.
 *
 * JavaScript is compiled from text, which is `eval` to a Content-Security-Policy. The page's own policy does not
 * apply here but the one this file is served with: see `web/serve.mjs`. There is no document to get at.
 */

import { create, type Polygrad } from "polygrad";

import type { DeviceName } from "./devices";
import { formatAll } from "./format";
import { ask, inspect, PROGRAM } from "./inspection";
import { runProgram } from "./javascript_program";
import type { Request, RunnerEvent, RunRequest, StartEvent } from "./messages";
import { failureOf } from "./program_failure";
import surroundings from "./surroundings.py";

function tell(event: StartEvent | RunnerEvent): void {
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

/** What a program in JavaScript finds, by the names of its variables. */
const namesFor = (pg: Polygrad): Readonly<Record<string, unknown>> => ({
  create: () => Promise.resolve(pg),
  console: shown,
  plot,
});

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

/** polygrad, as a program finds it. */
async function session(): Promise<Polygrad> {
  const pg = await starting;
  pg.Tensor.training = false; // the last program may have left it true
  pg.Device.default = device; // or chosen another device
  return pg;
}

async function run(request: RunRequest): Promise<void> {
  let started = performance.now();
  const seconds = (): number => (performance.now() - started) / 1e3;
  try {
    const pg = await session();
    started = performance.now();
    if (request.language === "python") await runPython(pg, request);
    else await runProgram(request.source, namesFor(pg));
    tell({ kind: "done", seconds: seconds() });
  } catch (error) {
    tell({ kind: "done", seconds: seconds(), failure: failureOf(error, "<exec>") });
  }
}

/** Answer a question about kernels. */
async function answer(find: (pg: Polygrad) => Promise<unknown>): Promise<void> {
  try {
    tell({ kind: "answer", value: await find(await session()) });
  } catch (error) {
    tell({ kind: "refused", failure: failureOf(error, PROGRAM) });
  }
}

addEventListener("message", ({ data }: MessageEvent<Request>) => {
  if (data.kind === "run") void run(data);
  else if (data.kind === "inspect") void answer((pg) => inspect(pg, data, namesFor(pg)));
  else void answer((pg) => ask(pg, data));
});
