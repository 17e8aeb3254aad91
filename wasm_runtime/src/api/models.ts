/** `nn.state`: the tensors of a model, which may be any object: a layer, arrays, plain objects, your own classes. */

import { isOptions, type Options } from "./encode";
import { ArgumentError } from "./generated/errors";
import { Tensor } from "./generated/tensor";
import { Handle, number } from "./handle";
import { PythonObject } from "./object";
import type { Session } from "./session";

/** Whether `x` is a tensor, of whatever dtype. */
export function isTensor(x: unknown): x is Tensor {
  return x instanceof Tensor;
}

/** Tensors by name. */
export type StateDict = Record<string, Tensor>;

/** What a container holds under a name. */
interface Part {
  readonly name: string;
  readonly value: unknown;
  /** Whether a getter of the container, or of one around it, returned it. */
  readonly fromGetter: boolean;
}

function toParts(entries: Iterable<readonly [unknown, unknown]>, fromGetter = false): Part[] {
  return Array.from(entries, ([name, value]) => ({ name: String(name), value, fromGetter }));
}

type PlainContainer = readonly unknown[] | Map<unknown, unknown> | Set<unknown> | Options;

function isPlain(x: unknown): x is PlainContainer {
  return Array.isArray(x) || x instanceof Map || x instanceof Set || isOptions(x);
}

/** The parts of an array, a Map, a Set or a plain object, in order. */
function partsOfPlain(x: PlainContainer): Part[] {
  if (x instanceof Map) return toParts(x);
  return toParts(Object.entries(x instanceof Set ? [...x] : x));
}

/** Whether a getter that returned these returns what is stored. What it computes is new each time. */
function isStored(first: unknown, second: unknown): boolean {
  if (first === second) return true;
  if (!isPlain(first) || !isPlain(second)) return false;
  const [parts, others] = [partsOfPlain(first), partsOfPlain(second)];
  return parts.length === others.length && parts.every(({ value }, i) => value === others[i]?.value);
}

/** Whether a program wrote this class: it is neither the engine's nor one of the generated classes. */
function isUsersClass(constructor: unknown): boolean {
  return (
    typeof constructor === "function" &&
    !Object.hasOwn(constructor, "shape") &&
    !Function.prototype.toString.call(constructor).includes("[native code]")
  );
}

/** What the getters of an object's classes return, where that is stored. */
function getterParts(x: object): Part[] {
  const parts = new Map<string, unknown>();
  const isMember = (name: string): boolean => parts.has(name) || Object.hasOwn(x, name);
  let prototype = Object.getPrototypeOf(x) as object | null;
  while (prototype !== null && isUsersClass(prototype.constructor)) {
    for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      if (property.get === undefined || isMember(name)) continue;
      const value: unknown = property.get.call(x);
      parts.set(name, isStored(value, property.get.call(x)) ? value : undefined);
    }
    prototype = Object.getPrototypeOf(prototype) as object | null;
  }
  return toParts(parts, true);
}

/** The parts of a container, in order; none for anything else. Throws ArgumentError for an object without state. */
function partsOf(x: unknown): Part[] {
  if (typeof x !== "object" || x === null || ArrayBuffer.isView(x)) return [];
  if (isPlain(x)) return partsOfPlain(x);
  if (x instanceof PythonObject) {
    const state = PythonObject.state(x);
    if (state === undefined) {
      throw new ArgumentError(
        `getStateDict: expected layers, optimizers, objects, arrays and tensors, got a ${x.constructor.name}`,
      );
    }
    return [...toParts([...state, ...Object.entries(x)]), ...getterParts(x)];
  }
  return x instanceof Handle ? [] : [...toParts(Object.entries(x)), ...getterParts(x)];
}

/** The tensors in a model, and the name of the first class instance among its containers. */
interface Collected {
  readonly tensors: ReadonlyMap<string, Tensor>;
  readonly instance: string | undefined;
}

function collect(model: unknown, prefix = ""): Collected {
  const tensors = new Map<string, Tensor>();
  const collected = new Set<Tensor>();
  const seen = new Set<unknown>();
  const stack: Part[] = [{ name: prefix, value: model, fromGetter: false }];
  let instance: string | undefined;
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const { name, value, fromGetter } = top;
    if (isTensor(value)) {
      // A getter is no second name for a property's tensor.
      if (!fromGetter || !collected.has(value)) {
        tensors.set(name.replace(/^\.+|\.+$/g, ""), value);
      }
      collected.add(value);
    }
    if (isTensor(value) || seen.has(value)) continue;
    seen.add(value);
    if (typeof value === "object" && value !== null && !isPlain(value) && !(value instanceof Handle)) {
      instance ??= value.constructor.name;
    }
    const start = name === "" || name.endsWith(".") ? name : `${name}.`;
    for (const part of partsOf(value).reverse()) {
      stack.push({ ...part, name: start + part.name, fromGetter: fromGetter || part.fromGetter });
    }
  }
  return { tensors, instance };
}

/** The tensors in `model`. Throws ArgumentError where `model` cannot have any, or hides them. */
function collectVisible(model: unknown, prefix: string, caller: string): ReadonlyMap<string, Tensor> {
  if (typeof model !== "object" || model === null) {
    const got = model === null ? "null" : typeof model;
    throw new ArgumentError(`${caller}: expected a layer, or an object or array of them, got ${got}`);
  }
  const { tensors, instance } = collect(model, prefix);
  if (instance !== undefined && tensors.size === 0) {
    throw new ArgumentError(
      `${caller}: expected tensors in the properties and getters of ${instance}, got none: private fields cannot be ` +
        "seen from outside, so give the class a getter for them",
    );
  }
  return tensors;
}

/** `State.getStateDict`. */
export function getStateDict(model: unknown, prefix = ""): StateDict {
  return Object.fromEntries(collectVisible(model, prefix, "getStateDict"));
}

/** `State.getParameters`. */
export function getParameters(model: unknown): Tensor[] {
  return [...collectVisible(model, "", "getParameters").values()];
}

/** The tensors in a value by name, if there are any. */
export function tensorsIn(value: unknown): ReadonlyMap<string, Tensor> {
  return collect(value).tensors;
}

/** How `loadStateDict` treats names; see there. */
export interface LoadStateDictOptions {
  /** Whether every name of the model must be there, and no other; true unless given. */
  readonly strict?: boolean;
}

/** `State.loadStateDict`. */
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
  await session.ask({ kind: "length", handle: result[number] });
  result.dispose();
}
