/** Tensors in arrays and plain objects: polygrad/tensor/core/trees.py for this side. */

import { isTensorOf } from "./calls";
import { isOptions, Tuple } from "./encode";
import { ArgumentError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { handlesIn } from "./handle";
import type { Session } from "./session";

/** The structure of a value: a tensor, by its number in the order of its tensors; arrays and plain objects; or another value. */
export type Template =
  | { readonly tensor: number }
  | { readonly parts: readonly (readonly [string, Template])[]; readonly array: boolean }
  | { readonly value: unknown };

/** A value, taken apart. */
export interface Tree {
  readonly template: Template;
  readonly tensors: readonly Tensor[];
}

/** Take a value apart. Throws ArgumentError, which begins with `what`, for tensors elsewhere than in arrays and plain objects. */
export function treeOf(session: Session, value: unknown, what: string): Tree {
  const tensors: Tensor[] = [];
  const templateOf = (x: unknown): Template => {
    if (isTensorOf(session, x)) return { tensor: tensors.push(x) - 1 };
    if (Array.isArray(x) || isOptions(x)) {
      const parts = Object.entries(x).map(([key, part]) => [key, templateOf(part)] as const);
      return { parts, array: Array.isArray(x) };
    }
    if (handlesIn(x).length === 0) return { value: x };
    throw new ArgumentError(
      `${what}: expected tensors, or arrays and plain objects of them, got a ${(x as object).constructor.name}`,
    );
  };
  return { template: templateOf(value), tensors };
}

/** The value of a template. `next` is called for each of its tensors, in order. */
export function fill(template: Template, next: () => unknown): unknown {
  if ("tensor" in template) return next();
  if ("value" in template) return template.value;
  const parts = template.parts.map(([key, part]) => [key, fill(part, next)] as const);
  return template.array ? parts.map(([, part]) => part) : Object.fromEntries(parts);
}

/** `fill` with these, in order. */
export function fillWith(template: Template, tensors: Iterable<unknown>): unknown {
  const iterator = tensors[Symbol.iterator]();
  return fill(template, () => iterator.next().value as unknown);
}

/** A template as Python has it, with `tensors` in it: tuples and dicts. What is no tensor is `other`. */
export function pythonTree(template: Template, tensors: readonly unknown[], other: unknown): unknown {
  if ("tensor" in template) return tensors[template.tensor];
  if ("value" in template) return other;
  const parts = template.parts.map(([key, part]) => [key, pythonTree(part, tensors, other)] as const);
  return template.array ? new Tuple(parts.map(([, part]) => part)) : Object.fromEntries(parts);
}
