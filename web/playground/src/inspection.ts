/** The worker's side of the kernel inspector: finds what a program launches, by `kernels.py`. */

import type { Polygrad } from "polygrad";

import cRenderer from "../../../polygrad/renderer/cstyle/c.py";
import { lineIn, runProgram } from "./javascript_program";
import inspector from "./kernels.py";
import type { AskRequest, InspectRequest } from "./messages";

/** The file that a program is to Python. */
export const PROGRAM = "<program>";

/** A stack has Python's frames, and below them the program's. */
const DEEPEST_STACK = 1000;

/** V8 keeps this many frames of a stack; other engines have no such property. */
const Stacks = Error as unknown as { stackTraceLimit: number | undefined };

/** Pages have no compiler for C, and no renderer: the inspector brings it. */
const C_RENDERER = `
import importlib.util, sys, types
name = "polygrad.renderer.cstyle.c"
if importlib.util.find_spec(name) is None:
    sys.modules[name] = types.ModuleType(name)
    exec(compile(text, "c.py", "exec"), vars(sys.modules[name]))
`;

let prepared: Promise<unknown> | undefined;

async function prepare(pg: Polygrad): Promise<void> {
  prepared ??= pg
    .python(C_RENDERER, { text: cRenderer })
    .then(() => pg.python('exec(compile(text, "kernels.py", "exec"))', { text: inspector }));
  await prepared;
}

/** What `kernels.py` returns is JSON. */
const parsed = (json: unknown): unknown => JSON.parse(String(json));

/** What a program launches. `names`: what a program in JavaScript finds. */
export async function inspect(
  pg: Polygrad,
  { language, source, result }: InspectRequest,
  names: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  await prepare(pg);
  if (language === "python") return parsed(await pg.python("inspect_python(source)", { source }));
  return inspectJavaScript(pg, source, result, names);
}

async function inspectJavaScript(
  pg: Polygrad,
  source: string,
  [from, to]: InspectRequest["result"],
  names: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  // The expression becomes a function, which is captured: the program returns it instead of its value.
  const body = `${source.slice(0, from)}return () => (${source.slice(from, to)}\n);`;
  const limit = Stacks.stackTraceLimit;
  Stacks.stackTraceLimit = DEEPEST_STACK;
  Object.assign(globalThis, { programLine: () => lineIn(new Error().stack ?? "") });
  await pg.python("begin()");
  try {
    const compute = (await runProgram(body, names)) as () => InstanceType<Polygrad["Tensor"]>;
    await pg.python("settle()");
    const value: unknown = compute();
    const captured = pg.TinyJit(compute);
    const calls = value instanceof pg.Tensor ? 2 : 0; // the second one captures; a step is captured already
    for (let i = 0; i < calls; i++) captured();
    return parsed(await pg.python("inspect_value(value, captured)", { value, captured }));
  } finally {
    Stacks.stackTraceLimit = limit;
    await pg.python("end()");
  }
}

/** What a function of `kernels.py` says. */
export async function ask(pg: Polygrad, { function: name, args }: AskRequest): Promise<unknown> {
  return parsed(await pg.python(`${name}(*args)`, { args }));
}
