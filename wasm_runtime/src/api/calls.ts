/** Calls by their kind of result: what the generated classes are made of. */

import type { DType } from "./dtypes";
import { isOptions, type Options } from "./encode";
import { ArgumentError } from "./generated/errors";
import { PYTHON_NAMES } from "./generated/names";
import { Handle, owner } from "./handle";
import { known, type Known } from "./known";
import { pythonName } from "./options";
import type { Session } from "./session";
import { infer, inferMany, inferParts, stillKnown } from "./shapes/infer";
import type { Tensor } from "./generated/tensor";

/** Call `end` once `result`, if it is a promise, is settled; `result`, or a promise of the same that follows \`end\`. */
export function afterwards<T>(result: T, end: () => void): T {
  if (!(result instanceof Promise)) {
    end();
    return result;
  }
  return result.finally(end) as T;
}

function pythonNames(options: Options): Options {
  const out: Record<string, unknown> = {};
  for (const key in options) out[PYTHON_NAMES[key] ?? key] = options[key];
  return out;
}

/** Arguments as they were written, divided into those by position and the options at the end. */
export function split(args: readonly unknown[]): [args: readonly unknown[], options: Options | undefined] {
  const last = args.at(-1);
  if (isOptions(last)) return [args.slice(0, -1), pythonNames(last)];
  let length = args.length;
  while (length > 0 && args[length - 1] === undefined) length--;
  return [length === args.length ? args : args.slice(0, length), undefined];
}

/** The tensor with this number, and what is known of it. */
export function wrap<D extends DType = DType>(
  session: Session,
  number: number,
  properties?: Known,
): Tensor<D> {
  return new (session.resultClass as typeof Tensor)(session, number, properties);
}

/** Whether `x` is a tensor of this session. */
export function isTensorOf(session: Session, x: unknown): x is Tensor {
  return x instanceof session.resultClass && (x as Handle)[owner] === session;
}

export function callTensor<D extends DType = DType>(
  session: Session,
  name: string,
  args: readonly unknown[],
): Tensor<D> {
  const given = split(args);
  const number = session.call(name, ...given);
  return wrap(
    session,
    number,
    session.transport.synchronous ? undefined : infer(name, given, session.device),
  );
}

/** Call a method of a tensor that returns it. */
export function callSelf<T extends Handle<Session> & { [known]: Known }>(
  self: T,
  name: string,
  args: readonly unknown[],
): T {
  self[owner].run(name, ...split([self, ...args]));
  self[known] = stillKnown(name, self[known]);
  return self;
}

export function callVoid(session: Session, name: string, args: readonly unknown[]): void {
  session.run(name, ...split(args));
}

export async function callValue<T>(session: Session, name: string, args: readonly unknown[]): Promise<T> {
  return (await session.value(name, ...split(args))) as T;
}

/** Call a function whose result is a tuple of tensors; `count` says how many. */
export function callTensors(
  session: Session,
  name: string,
  args: readonly unknown[],
  count: number | "arguments" | "arguments + 1",
): Tensor[] {
  const [positional, options] = split(args);
  const others = positional.length - 1; // without the object itself
  const length = count === "arguments" ? others : count === "arguments + 1" ? others + 1 : count;
  const properties = session.transport.synchronous ? [] : inferMany(name, [positional, options]);
  return unpack(session, session.call(name, positional, options), length, properties);
}

/** Call a function whose result is a pair of tensors where `argument`, at `position`, is given, and else a tensor. */
export function callTensorOrPair(
  session: Session,
  name: string,
  args: readonly unknown[],
  argument: string,
  position: number,
): Tensor | [Tensor, Tensor] {
  const [positional, options] = split(args);
  const given = positional[position] ?? options?.[argument] ?? false;
  if (given === false) return callTensor(session, name, args);
  return callTensors(session, name, args, 2) as [Tensor, Tensor];
}

/** The elements of a sequence on the Python side, which drops the sequence, and what is known of each. */
export function unpack(
  session: Session,
  source: number,
  count: number,
  properties: readonly (Known | undefined)[] = [],
): Tensor[] {
  const first = session.allocate(count);
  session.transport.send({ kind: "unpack", source, first, count });
  return Array.from({ length: count }, (_, i) => wrap(session, first + i, properties[i]));
}

/** A tuple of tensors and of tuples of them: `counts` are the lengths of these, and null for a tensor. */
export function callNested(
  session: Session,
  name: string,
  args: readonly unknown[],
  counts: readonly (number | null)[],
): (Tensor | Tensor[])[] {
  const source = session.call(name, ...split(args));
  const first = session.allocate(counts.length);
  session.transport.send({ kind: "unpack", source, first, count: counts.length });
  return counts.map((count, i) =>
    count === null ? wrap(session, first + i) : unpack(session, first + i, count),
  );
}

/** Call a method that divides a tensor: how many parts there are follows from its shape. Throws ArgumentError. */
export function callParts(session: Session, name: string, args: readonly [Tensor, ...unknown[]]): Tensor[] {
  const given = split(args);
  const [{ shape }] = args;
  const properties = inferParts(name, given, shape);
  if (properties !== undefined) {
    const ofWorker = session.transport.synchronous ? [] : properties;
    return unpack(session, session.call(name, ...given), properties.length, ofWorker);
  }
  if (session.transport.synchronous) session.call(name, ...given); // Python says why
  const method = name.replace("Tensor.", "");
  throw new ArgumentError(
    `${method}: expected arguments that divide a tensor of shape [${shape.join(", ")}]`,
  );
}

/** Call a function whose result is a list of tensors of any length. */
export async function callTensorList(
  session: Session,
  name: string,
  args: readonly unknown[],
): Promise<Tensor[]> {
  const source = session.call(name, ...split(args));
  const count = (await session.ask({ kind: "length", handle: source })) as number;
  return unpack(session, source, count);
}

/** Call a function whose result is tensors by name. */
export async function callStateDict(
  session: Session,
  name: string,
  args: readonly unknown[],
): Promise<Record<string, Tensor>> {
  const state = new Handle(session, session.call(name, ...split(args)));
  try {
    const names = (await session.value("$keys", [state])) as string[];
    const tensors = unpack(session, session.call("$values", [state]), names.length);
    return Object.fromEntries(tensors.map((tensor, i) => [names[i] ?? "", tensor]));
  } finally {
    state.dispose();
  }
}

/** Run `run` inside of the Python context manager that `name` makes. */
export function callContext<T>(session: Session, name: string, run: () => T, args: readonly unknown[]): T {
  const context = new Handle(session, session.call(name, ...split(args)));
  session.run("$enter", [context]);
  const end = (): void => {
    session.run("$exit", [context]);
    context.dispose();
  };
  let result: T;
  try {
    result = run();
  } catch (error) {
    end();
    throw error;
  }
  return afterwards(result, end);
}

/** Give the members of a class Python's names as well: `log_softmax` for `logSoftmax`. */
export function addPythonNames(type: { readonly prototype: object }): void {
  for (const target of [type, type.prototype]) {
    for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(target))) {
      const second = pythonName(name);
      if (second !== name) Object.defineProperty(target, second, member);
    }
  }
}
