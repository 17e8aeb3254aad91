/** `nn.state`: the tensors of a model, which may be any object: a layer, arrays, plain objects, your own classes. */

import { Tensor } from "./generated/tensor";
import { ArgumentError } from "./generated/errors";
import { Handle } from "./handle";
import { PythonObject } from "./object";
import type { Session } from "./session";

/** Tensors by name. */
export type StateDict = Record<string, Tensor>;

/** The parts of a container, in order, or undefined when `x` is none. */
function children(x: unknown): [string, unknown][] | undefined {
  if (typeof x !== "object" || x === null || ArrayBuffer.isView(x)) return undefined;
  if (x instanceof Map) return Array.from(x as Map<unknown, unknown>, ([key, value]) => [String(key), value]);
  if (x instanceof PythonObject) {
    const found = x.state();
    if (found.length > 0) return found;
    throw new ArgumentError(
      `getStateDict: expected layers, optimizers, objects, arrays and tensors, got a ${x.constructor.name}`,
    );
  }
  return x instanceof Handle ? undefined : Object.entries(x);
}

/**
 * Every tensor in `model` by its dotted name, in order. It looks into arrays, Maps, layers, and the properties of
 * objects, each once; and into optimizers, in a worker once their `ready()` was awaited.
 */
export function getStateDict(model: unknown, prefix = ""): StateDict {
  const found: StateDict = {};
  const seen = new Set<unknown>();
  const stack: [string, unknown][] = [[prefix, model]];
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const [name, x] = top;
    if (x instanceof Tensor) {
      found[name.replace(/^\.+|\.+$/g, "")] = x;
      continue;
    }
    if (seen.has(x)) continue;
    seen.add(x);
    const start = name === "" || name.endsWith(".") ? name : `${name}.`;
    for (const [key, value] of (children(x) ?? []).reverse()) stack.push([start + key, value]);
  }
  return found;
}

/** Every tensor in `model`, in order: see `getStateDict`. */
export function getParameters(model: unknown): Tensor[] {
  return Object.values(getStateDict(model));
}

/** How `loadStateDict` treats names; see there. */
export interface LoadStateDictOptions {
  /** Whether every name of the model must be there, and no other; true unless given. */
  readonly strict?: boolean;
}

/**
 * Give the tensors of `model` the values of `state`, by name. They are converted to the model's dtype and device.
 * Rejects with ArgumentError for missing or unknown names, ShapeError for another shape.
 */
export async function loadStateDict(
  session: Session,
  model: unknown,
  state: StateDict,
  { strict = true }: LoadStateDictOptions = {},
): Promise<void> {
  const result = new Handle(
    session,
    session.call("nn.state.load_state_dict", [getStateDict(model), state], { strict }),
  );
  await session.ask(["length", result.number]);
  result.dispose();
}
