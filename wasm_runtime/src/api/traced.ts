/**
 * Functions of this side that Python calls: the one that is captured or batched, a gradient, a hook.
 *
 * On this thread Python calls the function. For a worker it is called once, here, when it becomes an argument: its
 * operations are recorded, and Python carries them out as often as it calls the function. So it computes lazily, and
 * reads nothing. What it makes is freed when it returns; its results get numbers of their own, which Python drops.
 */

import { wrap } from "./calls";
import { Callback, Dropped } from "./encode";
import { ArgumentError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { knownOf, type Known } from "./known";
import type { Session } from "./session";
import { treeOf, type Template } from "./trees";

/** A function of tensors, which are all arguments that it gets from Python, in order. */
export type Run = (...tensors: Tensor[]) => unknown;

export type Inputs = () => readonly (Known | undefined)[];

/** The result as Python gets it: `results` stand for its tensors. */
type ToPython = (template: Template, results: readonly Dropped[]) => unknown;

export class TracedFunction {
  readonly #session: Session;
  readonly #what: string;
  #template: Template = { value: undefined };
  #properties: readonly (Known | undefined)[] = [];
  /** The function as an argument of a call. */
  readonly callback: Callback;

  /**
   * `what`: what the function is called in errors. `inputs`: what is known of each tensor that Python calls it with, when
   * it does. `toPython`: what Python gets of its result.
   */
  constructor(session: Session, what: string, inputs: Inputs, run: Run, toPython: ToPython) {
    this.#session = session;
    this.#what = what;
    session.flush(); // what was used before is none of the function's operations
    this.callback = new Callback(
      session.transport.body(() => {
        session.captureDepth++;
        try {
          return session.scope(() => this.#call(inputs, run, toPython));
        } finally {
          session.captureDepth--;
          session.flush();
        }
      }),
    );
  }

  /** Call the function; its result, as text. */
  #call(inputs: Inputs, run: Run, toPython: ToPython): string {
    const session = this.#session;
    // On this thread Python is asked, as sizes that are Variables differ from call to call.
    const told = (known: Known | undefined): Known | undefined =>
      session.transport.synchronous ? undefined : known;
    const tensors = inputs().map((known, i) => wrap(session, session.call("$argument", [i]), told(known)));
    const result = run(...tensors);
    if (result instanceof Promise) {
      throw new ArgumentError(`${this.#what}: expected it to return at once, got a promise`);
    }
    const { template, tensors: results } = treeOf(session, result, this.#what);
    this.#template = template;
    this.#properties = results.map((tensor) => told(knownOf(tensor)));
    const dropped = results.map((tensor) => new Dropped(session.call("$same", [tensor])));
    return session.encode(toPython(template, dropped)).text;
  }

  /** The structure of the result. It is known when the function has run. */
  get template(): Template {
    return this.#template;
  }

  /** What is known of each tensor of the result. */
  get properties(): readonly (Known | undefined)[] {
    return this.#properties;
  }
}

/** Throws ArgumentError unless `fn`, an argument of `what`, is a function. */
export function checkFunction(fn: unknown, what: string): void {
  if (typeof fn !== "function") throw new ArgumentError(`${what}: expected a function, got ${typeof fn}`);
}

/** Call a method that calls `fn`, which returns a tensor, and may wait for a GPU. */
export async function callWithFunction(
  session: Session,
  name: string,
  self: object,
  fn: () => Tensor,
): Promise<Tensor> {
  const method = name.split(".").slice(-2).join(".");
  checkFunction(fn, method);
  const traced = new TracedFunction(
    session,
    method,
    () => [],
    fn,
    (_, results) => results[0] ?? null,
  );
  return wrap(session, await session.callWaiting(name, [self, traced.callback]));
}
