/**
 * Shapes and dtypes of results, computed on this side: `polygrad/tensor` says the same. A session in a worker has no
 * other way to know them at once.
 *
 * Where a rule cannot tell, such as for symbolic sizes and for options that it does not know, nothing is known, and
 * `ready()` asks Python. What Python refuses fails there, whatever is known here.
 */

import type { Constructed, Known } from "../known";
import { DEFAULT } from "./kinds";
import { knownParts } from "./parts";
import { Arguments } from "./rule";
import { RULES, RULES_OF_MANY } from "./table";

export { RULES, RULES_OF_MANY };

/** What methods that return their tensor change of it. */
const CHANGES: Readonly<Record<string, readonly (keyof Known)[]>> = {
  "Tensor.to_": ["device"],
  "Tensor.replace": ["shape", "dtype", "device", "requires_grad"],
  "Tensor.requires_grad_": ["requires_grad"],
  "Tensor.is_param_": ["requires_grad"],
};

/** What is known of a tensor after its method `name`. */
export function stillKnown(name: string, known: Known): Known {
  const changes = CHANGES[name];
  if (changes === undefined) return known;
  const entries = Object.entries(known) as [keyof Known, unknown][];
  return Object.fromEntries(entries.filter(([key]) => !changes.includes(key)));
}

/** `known` with the name of the default device. */
function onDevice(known: Known | undefined, device: string): Known | undefined {
  return known?.device === DEFAULT ? { ...known, device } : known;
}

/** What is known of the result of `name`. `device`: the default device. */
export function infer(name: string, args: Constructed, device: string): Known | undefined {
  const given = new Arguments(...args);
  const found = RULES[name]?.(given);
  return given.hasUnread() ? undefined : onDevice(found, device);
}

/** What is known of the results of `name`. */
export function inferMany(name: string, args: Constructed): readonly (Known | undefined)[] {
  const given = new Arguments(...args);
  const found = RULES_OF_MANY[name]?.(given) ?? [];
  return given.hasUnread() ? [] : found;
}

/**
 * What is known of each part that `name` divides a tensor of this shape into; undefined where Python refuses to, and for
 * options that the rule does not know.
 */
export function inferParts(name: string, args: Constructed, shape: readonly number[]): Known[] | undefined {
  const given = new Arguments(...args);
  const parts = knownParts(name, shape, given);
  return given.hasUnread() ? undefined : parts;
}
