/**
 * Functions of functions: `vmap`, `checkpoint`, `customGradient`, and derivatives. Python does the work on graphs (see
 * polygrad/tensor/binding.py); this side knows the structure of arguments and results.
 */

import { isTensorOf, unpack, wrap } from "./calls";
import { Tuple } from "./encode";
import { ArgumentError, GradientError, ShapeError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { Handle } from "./handle";
import { knownOf, type Known } from "./known";
import { checkOptions, type OptionNames } from "./options";
import type { Session } from "./session";
import { checkFunction, TracedFunction } from "./traced";
import { fill, fillWith, pythonTree, treeOf, type Template, type Tree } from "./trees";

/** An axis of a batch: its number, or null for what all examples share. */
export type BatchAxis = number | null;

export interface VmapOptions {
  /** The batch axis of each argument, or one for all: 0 unless given. An argument of `null` is the same for every example. */
  readonly inAxes?: BatchAxis | readonly BatchAxis[];
  /** The batch axis of each result, or one for all: 0 unless given. `null`: the result is the same for all examples. */
  readonly outAxes?: BatchAxis | readonly BatchAxis[];
}

export interface DerivativeOptions {
  /** Whether the function returns `[result, other]`; `other` is not differentiated, and comes last. */
  readonly hasAux?: boolean;
}

export interface JacobianOptions extends DerivativeOptions {
  /** The number of the argument to differentiate with respect to, or several: 0 unless given. */
  readonly argnums?: number | readonly number[];
}

/** The gradients of the primals from cotangents, which are like the result. */
export type PullBack<P> = (cotangents: unknown) => P;

const OF_VMAP: OptionNames<VmapOptions> = { inAxes: true, outAxes: true };
const OF_DERIVATIVES: OptionNames<DerivativeOptions> = { hasAux: true };
const OF_JACOBIANS: OptionNames<JacobianOptions> = { argnums: true, hasAux: true };
const OF_HESSIANS: OptionNames<Omit<JacobianOptions, "hasAux">> = { argnums: true };

type Trees = readonly Tree[];

function treesOf(session: Session, args: readonly unknown[], what: string): Trees {
  return args.map((arg) => treeOf(session, arg, what));
}

/** All tensors of these, in order. */
function tensorsOf(trees: Trees): Tensor[] {
  return trees.flatMap(({ tensors }) => tensors);
}

/** A function of the arguments `trees` for Python, which gets its result with tuples for arrays. */
function traced(
  session: Session,
  what: string,
  trees: Trees,
  fn: (...args: never[]) => unknown,
  inputs = (): readonly (Known | undefined)[] => tensorsOf(trees).map(knownOf),
): TracedFunction {
  const run = (...tensors: Tensor[]): unknown => {
    const next = tensors.values();
    const args = trees.map(({ template }) => fill(template, () => next.next().value));
    return fn(...(args as never[]));
  };
  return new TracedFunction(session, what, inputs, run, (template, results) =>
    pythonTree(template, results, new Tuple([])),
  );
}

/** The tensors of each argument, as Python gets them. */
function lists(trees: Trees): readonly (readonly Tensor[])[] {
  return trees.map(({ tensors }) => tensors);
}

// --- vmap

/** The axis of each tensor of a result. */
function resultAxes(template: Template, outAxes: VmapOptions["outAxes"]): BatchAxis[] {
  if (!Array.isArray(outAxes) || !("parts" in template)) {
    const axis = Array.isArray(outAxes) ? null : (outAxes as BatchAxis);
    return Array.from({ length: countOf(template) }, () => axis);
  }
  const axes = outAxes as readonly BatchAxis[];
  return template.parts.flatMap(([, part], i) =>
    Array.from({ length: countOf(part) }, () => axes[i] ?? null),
  );
}

/** `known` without the axis of a batch, or with one of `size`. */
function changeAxis(
  known: Known | undefined,
  change: (shape: (number | string)[]) => void,
): Known | undefined {
  if (known?.shape === undefined) return known;
  const shape = [...known.shape];
  change(shape);
  return { ...known, shape };
}

function exampleOf(known: Known | undefined, axis: number): Known | undefined {
  return changeAxis(known, (shape) => shape.splice(axis < 0 ? axis + shape.length : axis, 1));
}

function batchOf(
  known: Known | undefined,
  axis: BatchAxis,
  size: number | string | undefined,
): Known | undefined {
  if (axis === null) return known;
  if (size === undefined) return undefined;
  return changeAxis(known, (shape) => shape.splice(axis < 0 ? axis + shape.length + 1 : axis, 0, size));
}

/** `Polygrad.vmap`. */
export function vmap<A extends unknown[], R>(
  session: Session,
  fn: (...args: A) => R,
  { inAxes = 0, outAxes = 0 }: VmapOptions,
): (...args: A) => R {
  return (...args) => {
    const given = Array.isArray(inAxes)
      ? (inAxes as readonly BatchAxis[])
      : args.map(() => inAxes as BatchAxis);
    if (given.length !== args.length) {
      throw new ArgumentError(`vmap: expected inAxes for ${args.length} arguments, got ${given.length}`);
    }
    const trees = args.map((arg, i) =>
      given[i] === null ? { template: { value: arg }, tensors: [] } : treeOf(session, arg, "vmap"),
    );
    if (tensorsOf(trees).length === 0) {
      throw new ShapeError("vmap: expected a tensor with an axis of examples, got none");
    }
    const axes = given.map((axis, i) => (trees[i]?.tensors.length === 0 ? null : axis));
    const batches = trees.flatMap(({ tensors }, i) =>
      tensors.map((tensor) => ({ known: knownOf(tensor), axis: axes[i] ?? 0 })),
    );
    const examples = (): (Known | undefined)[] => batches.map(({ known, axis }) => exampleOf(known, axis));
    const example = traced(session, "vmap", trees, fn, examples);
    const source = session.callPacked("$functions.vmap", [example.callback, axes, outAxes, lists(trees)]);
    const [batch] = batches;
    const size = batch?.known?.shape?.at(batch.axis);
    const found = resultAxes(example.template, outAxes);
    const properties = example.properties.map((known, i) => batchOf(known, found[i] ?? null, size));
    return fillWith(example.template, unpack(session, source, properties.length, properties)) as R;
  };
}

// --- gradients

/** `Polygrad.checkpoint`. */
export function checkpoint<A extends unknown[]>(
  session: Session,
  fn: (...args: A) => Tensor,
  inputs: A,
): Tensor {
  const result = fn(...inputs);
  const tensors = inputs.filter((x) => isTensorOf(session, x));
  const known = isTensorOf(session, result) ? knownOf(result) : undefined;
  const properties = session.transport.synchronous ? undefined : known;
  return wrap(session, session.call("$functions.checkpoint", [result, tensors]), properties);
}

/** What `backward` of a custom gradient returns: the gradient of the only input, or of each. */
export type InputGradients = Tensor | null | readonly (Tensor | null)[];

/** `Polygrad.customGradient`. */
export function customGradient<A extends unknown[], R extends Tensor | readonly Tensor[]>(
  session: Session,
  forward: (...args: A) => R,
  backward: (gradient: R, value: R, ...inputs: Tensor[]) => InputGradients,
): (...args: A) => R {
  const what = "customGradient";
  return (...args) => {
    const isInput = (x: unknown): x is Tensor => isTensorOf(session, x);
    const inputs = args.filter(isInput);
    const known = (): (Known | undefined)[] => inputs.map(knownOf);
    const run = (...tensors: Tensor[]): unknown => {
      const next = tensors.values();
      return forward(...(args.map((arg) => (isInput(arg) ? next.next().value : arg)) as A));
    };
    const value = new TracedFunction(session, what, known, run, (template, results) => {
      if ("tensor" in template) return results[0];
      if (results.length > 0) return new Tuple(results);
      throw new GradientError(`${what}: expected a function that returns tensors, got one that returns none`);
    });
    // Python calls it with the gradients of all results, the results, and the inputs.
    const runBackward = (...tensors: Tensor[]): unknown => {
      const next = tensors.values();
      const like = (): R => fill(value.template, () => next.next().value) as R;
      return backward(like(), like(), ...next);
    };
    const ofBackward = (): (Known | undefined)[] => [...value.properties, ...value.properties, ...known()];
    const gradient = new TracedFunction(session, what, ofBackward, runBackward, (template, results) =>
      pythonTree(template, results, null),
    );
    const call = [value.callback, gradient.callback, inputs];
    const source = session.callPacked("$functions.with_gradient", call);
    return fillWith(value.template, unpack(session, source, value.properties.length, value.properties)) as R;
  };
}

// --- derivatives

/** `Polygrad.vjp`. */
export function vjp<P extends unknown[]>(
  session: Session,
  fn: (...primals: P) => unknown,
  primals: P,
  { hasAux = false }: DerivativeOptions,
): [unknown, PullBack<P>, ...unknown[]] {
  const trees = treesOf(session, primals, "vjp");
  const result = traced(session, "vjp", trees, fn);
  const source = session.callPacked("$functions.vjp", [result.callback, lists(trees), hasAux]);
  const { properties, template } = result;
  const first = session.allocate(properties.length + 1);
  session.transport.send({ kind: "unpack", source, first, count: properties.length + 1 });
  const tensors = properties.map((known, i) => wrap(session, first + i, known));
  const pullBackHandle = new Handle(session, first + properties.length);
  const pullBack = (cotangents: unknown): P => {
    const { tensors: given } = treeOf(session, cotangents, "vjp");
    const inputs = tensorsOf(trees);
    const number = session.callPacked("$functions.pull_back", [pullBackHandle, given]);
    const known = session.transport.synchronous ? [] : inputs.map(knownOf);
    const next = unpack(session, number, inputs.length, known).values();
    return trees.map((tree) => fill(tree.template, () => next.next().value)) as P;
  };
  const filled = fillWith(template, tensors);
  if (!hasAux) return [filled, pullBack];
  const [value, other] = filled as [unknown, unknown];
  return [value, pullBack, other];
}

/** `Polygrad.jvp`. */
export function jvp<P extends unknown[]>(
  session: Session,
  fn: (...primals: P) => unknown,
  primals: P,
  tangents: P,
  { hasAux = false }: DerivativeOptions,
): unknown[] {
  const trees = treesOf(session, primals, "jvp");
  const directions = treesOf(session, tangents, "jvp");
  const result = traced(session, "jvp", trees, fn);
  const source = session.callPacked("$functions.jvp", [
    result.callback,
    lists(trees),
    lists(directions),
    hasAux,
  ]);
  const [value, other] = parts(result.template, hasAux);
  const count = countOf(value);
  const known = result.properties;
  const all = [...known.slice(0, count), ...known];
  const next = unpack(session, source, all.length, all).values();
  const like = (template: Template): unknown => fill(template, () => next.next().value);
  return hasAux ? [like(value), like(value), like(other)] : [like(value), like(value)];
}

/** How a Jacobian is computed: by rows, by columns, or the Jacobian of a Jacobian. */
export type JacobianMode = "jacrev" | "jacfwd" | "hessian";

/** `Polygrad.jacrev` and those like it. */
export function jacobian<A extends unknown[]>(
  session: Session,
  mode: JacobianMode,
  fn: (...args: A) => unknown,
  { argnums = 0, hasAux = false }: JacobianOptions,
): (...args: A) => unknown {
  return (...args) => {
    const trees = treesOf(session, args, mode);
    const result = traced(session, mode, trees, fn);
    const call = [mode, result.callback, argnums, hasAux, lists(trees)];
    const source = session.callPacked("$functions.jacobian", call);
    const [value, other] = parts(result.template, hasAux);
    const numbers = typeof argnums === "number" ? [argnums] : argnums;
    const selected = numbers.map((i) => trees.at(i) ?? { template: { value: null }, tensors: [] });
    const ofArguments = (next: () => unknown): unknown => {
      const filled = selected.map(({ template }) => fill(template, next));
      return typeof argnums === "number" ? filled[0] : filled;
    };
    const levels = mode === "hessian" ? 2 : 1;
    const count = countOf(value) * tensorsOf(selected).length ** levels + countOf(other);
    const tensors = unpack(session, source, count).values();
    const next = (): unknown => tensors.next().value;
    const ofResult = levels === 2 ? () => ofArguments(() => ofArguments(next)) : () => ofArguments(next);
    const derivative = fill(value, ofResult);
    return hasAux ? [derivative, fill(other, next)] : derivative;
  };
}

const NOTHING: Template = { value: undefined };

/** The templates of a result, and of what else a function returned. */
function parts(template: Template, hasAux: boolean): [value: Template, other: Template] {
  if (!hasAux) return [template, NOTHING];
  const both = "parts" in template ? template.parts.map(([, part]) => part) : [];
  return [both[0] ?? NOTHING, both[1] ?? NOTHING];
}

function countOf(template: Template): number {
  let count = 0;
  fill(template, () => count++);
  return count;
}

// --- the API

type Derivative<A extends unknown[]> = (...args: A) => unknown;

/** Functions of functions. In a worker the function that they get is recorded, so it cannot read values. */
export interface FunctionTransforms {
  /**
   * A function that applies `fn` to each example of a batch, in one graph.
   *
   *     const distances = vmap((a, b) => a.sub(b).square().sum())(xs, ys);
   *     const rowTimes = vmap((x, w) => x.mul(w), { inAxes: [0, null] })(xs, w);
   *
   * Arguments are tensors, or arrays and plain objects of them; what has no tensors in it is passed on. Random numbers
   * are the same for every example. Throws ArgumentError when `fn` reads values, writes to an example, writes values of
   * one to a tensor from outside of it (or to its gradient), or uses an operation without a rule for batches; ShapeError
   * for batches of different sizes.
   */
  vmap<A extends unknown[], R>(fn: (...args: A) => R, options?: VmapOptions): (...args: A) => R;
  /**
   * `fn(...inputs)`, whose gradient computes the values that it needs again instead of storing them.
   *
   *     const hidden = checkpoint((x) => block.forward(x), x);
   *
   * Random numbers are the same. Throws GradientError for a result that is no tensor of floats.
   */
  checkpoint<A extends unknown[]>(fn: (...inputs: A) => Tensor, ...inputs: A): Tensor;
  /**
   * `forward`, a function of tensors that returns a tensor or an array of them, with a gradient of your own.
   *
   *     const clipped = customGradient((x) => x.clone(), (gradient) => gradient.clamp(-1, 1));
   *
   * `backward(gradient, value, ...inputs)` returns the gradient of the input, or an array of one for each, which may be
   * null. Of several results, `gradient` and `value` are arrays, and it is called for each result that is differentiated.
   * Arguments that are no tensors go to `forward` alone. Throws GradientError and ShapeError, when it is differentiated,
   * for gradients that do not fit.
   */
  customGradient<A extends unknown[], R extends Tensor | readonly Tensor[]>(
    forward: (...args: A) => R,
    backward: (gradient: R, value: R, ...inputs: Tensor[]) => InputGradients,
  ): (...args: A) => R;
  /**
   * `fn(...primals)`, and its vector-Jacobian product: a function from cotangents of the result to gradients, one like
   * each of the primals.
   *
   *     const [out, pullBack] = vjp((x) => x.sin(), [x]);
   *     const [gradient] = pullBack(out.onesLike());
   *
   * With `hasAux`, `fn` returns `[result, other]`, and `other` comes third. Throws ArgumentError, ShapeError.
   */
  vjp<P extends unknown[], R>(fn: (...primals: P) => R, primals: [...P]): [R, PullBack<P>];
  vjp<P extends unknown[], R, O>(
    fn: (...primals: P) => readonly [R, O],
    primals: [...P],
    options: DerivativeOptions & { readonly hasAux: true },
  ): [R, PullBack<P>, O];
  /**
   * `fn(...primals)`, and its derivative in the direction `tangents`, an array like `primals`.
   *
   *     const [out, slope] = jvp((x) => x.sin(), [x], [x.onesLike()]);
   *
   * With `hasAux`, `fn` returns `[result, other]`, and `other` comes third. Throws ArgumentError, ShapeError.
   */
  jvp<P extends unknown[], R>(fn: (...primals: P) => R, primals: [...P], tangents: [...P]): [R, R];
  jvp<P extends unknown[], R, O>(
    fn: (...primals: P) => readonly [R, O],
    primals: [...P],
    tangents: [...P],
    options: DerivativeOptions & { readonly hasAux: true },
  ): [R, R, O];
  /**
   * The function that gives the Jacobian of `fn`, by reverse mode: as many rows as the result has elements.
   *
   *     const jacobian = jacrev((x) => x.mul(x))(x); // of shape [...result, ...x]
   *
   * Where results are arrays and objects, it is one for each, and for several `argnums` an array. With `hasAux`, `fn`
   * returns `[result, other]`, and the function `[Jacobian, other]`. Throws ArgumentError, GradientError.
   */
  jacrev<A extends unknown[]>(
    fn: (...args: A) => Tensor,
    options?: { argnums?: number },
  ): (...args: A) => Tensor;
  jacrev<A extends unknown[]>(fn: (...args: A) => unknown, options?: JacobianOptions): Derivative<A>;
  /** `jacrev` by forward mode: as many columns as the arguments have elements. Throws ArgumentError, GradientError. */
  jacfwd<A extends unknown[]>(
    fn: (...args: A) => Tensor,
    options?: { argnums?: number },
  ): (...args: A) => Tensor;
  jacfwd<A extends unknown[]>(fn: (...args: A) => unknown, options?: JacobianOptions): Derivative<A>;
  /**
   * The function that gives the second derivatives of `fn`: `jacfwd` of `jacrev`. Throws ArgumentError, GradientError.
   *
   *     const curvature = hessian((x) => x.mul(x).sum())(x);
   */
  hessian<A extends unknown[]>(
    fn: (...args: A) => Tensor,
    options?: { argnums?: number },
  ): (...args: A) => Tensor;
  hessian<A extends unknown[]>(
    fn: (...args: A) => unknown,
    options?: Omit<JacobianOptions, "hasAux">,
  ): Derivative<A>;
}

/** The functions of functions of a session. */
export function functionTransforms(session: Session): FunctionTransforms {
  const derivative =
    (mode: JacobianMode) =>
    (fn: (...args: unknown[]) => unknown, options: JacobianOptions = {}) => {
      checkFunction(fn, mode);
      checkOptions(mode, options, mode === "hessian" ? OF_HESSIANS : OF_JACOBIANS);
      return jacobian(session, mode, fn, options);
    };
  const transforms = {
    vmap(fn: (...args: unknown[]) => unknown, options: VmapOptions = {}) {
      checkFunction(fn, "vmap");
      checkOptions("vmap", options, OF_VMAP);
      return vmap(session, fn, options);
    },
    checkpoint(fn: (...args: unknown[]) => Tensor, ...inputs: unknown[]) {
      checkFunction(fn, "checkpoint");
      return checkpoint(session, fn, inputs);
    },
    customGradient(forward: (...args: unknown[]) => Tensor, backward: () => InputGradients) {
      checkFunction(forward, "customGradient");
      checkFunction(backward, "customGradient");
      return customGradient(session, forward, backward);
    },
    vjp(fn: (...args: unknown[]) => unknown, primals: unknown[], options: DerivativeOptions = {}) {
      checkFunction(fn, "vjp");
      checkArray(primals, "vjp: primals");
      checkOptions("vjp", options, OF_DERIVATIVES);
      return vjp(session, fn, primals, options);
    },
    jvp(
      fn: (...args: unknown[]) => unknown,
      primals: unknown[],
      tangents: unknown[],
      options: DerivativeOptions = {},
    ) {
      checkFunction(fn, "jvp");
      checkArray(primals, "jvp: primals");
      checkArray(tangents, "jvp: tangents");
      checkOptions("jvp", options, OF_DERIVATIVES);
      return jvp(session, fn, primals, tangents, options);
    },
    jacrev: derivative("jacrev"),
    jacfwd: derivative("jacfwd"),
    hessian: derivative("hessian"),
  };
  return transforms as unknown as FunctionTransforms;
}

function checkArray(x: unknown, what: string): void {
  if (!Array.isArray(x)) throw new ArgumentError(`${what}: expected an array of arguments, got ${typeof x}`);
}
