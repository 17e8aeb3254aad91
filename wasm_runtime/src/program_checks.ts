/**
 * `checkHeader`: whether a Program that somebody else wrote is consistent, and within the limits.
 * `_check` of `polygrad/runtime/program.py` refuses the same Programs.
 */

import { itemSize, isDType } from "./arrays";
import { isGrid } from "./grid";
import { MAX_ARGUMENTS, MAX_BYTES, MAX_INVOCATIONS, MAX_RANK, MAX_SUBGROUP, MAX_THREADS } from "./limits";
import { isBytes, isPart, type Part } from "./parts";
import type { BufferSpec, KernelSpec, Launch, Program, Variable } from "./program";

export const ROLES = ["input", "output", "param", "state", "scratch"] as const;
export const LANGUAGES = ["wasm", "object", "library", "linear", "wgsl", "cuda", "msl"] as const;
const GRID_LANGUAGES: readonly string[] = ["wgsl", "cuda", "msl"];

/**
 * The variables of a parallel kernel: the number of the thread that runs it, the number of threads, the number of the
 * part of its work that a call does, and the number of parts. This is their order in a `LaunchList`.
 */
export const THREAD_VARIABLES: readonly string[] = ["thread", "threads", "part", "parts"];

/** A Program with its parts described instead of present. */
export type Header = Omit<Program, "kernels" | "driver" | "values"> & {
  readonly driver: Part;
  readonly values: Part;
  readonly kernels: readonly (Omit<KernelSpec, "code"> & { readonly code: Part })[];
};

/** The fields of a header and of the objects in it; all are required, and there are no others. */
const FIELDS = {
  header: [
    "arena",
    "buffers",
    "device",
    "driver",
    "kernels",
    "launches",
    "shared_memory",
    "target",
    "threads",
    "values",
    "variables",
  ],
  buffer: ["dtype", "name", "offset", "role", "shape", "size"],
  kernel: [
    "code",
    "language",
    "n_buffers",
    "name",
    "parallel",
    "subgroup",
    "variables",
    "workgroup",
    "writes",
  ],
  launch: ["barrier", "bindings", "grid", "kernel"],
  binding: ["buffer", "offset"],
  variable: ["hi", "lo", "name"],
} as const;

/** The bytes of an element of a dtype that only other hosts compute with. */
const OTHER_SIZES: Readonly<Record<string, number>> = { fp8e4m3: 1, fp8e5m2: 1 };

const isCount = (n: unknown, most = Number.MAX_SAFE_INTEGER): n is number =>
  Number.isSafeInteger(n) && (n as number) >= 0 && (n as number) <= most;
const isText = (text: unknown): text is string => typeof text === "string";
const isTriple = (list: unknown): list is readonly unknown[] => Array.isArray(list) && list.length === 3;

function check(holds: boolean, what: string, got: unknown): void {
  if (!holds) throw new TypeError(`${what}: ${JSON.stringify(got).slice(0, 200)}`);
}

function checkFields(kind: keyof typeof FIELDS, value: object): void {
  check(Object.keys(value).sort().join() === FIELDS[kind].join(), `no ${kind}`, value);
}

/** Throws TypeError for a header that contradicts itself or a limit. */
export function checkHeader(header: Header): void {
  checkFields("header", header);
  for (const part of [header.buffers, header.kernels, header.launches, header.variables]) {
    check(Array.isArray(part), "no list", part);
  }
  check([header.device, header.target].every(isText), "no device and target", header.device);
  check(isBytes(header.arena), "no size of an arena", header.arena);
  check(
    [header.driver, header.values].every((part) => isPart(part)),
    "no parts",
    header.driver,
  );
  check(isCount(header.threads, MAX_THREADS) && header.threads > 0, "no threads", header.threads);
  const isParallel = header.kernels.some(({ parallel }) => parallel);
  check(header.threads === 1 || isParallel, "threads and no parallel kernel", header.threads);
  check(typeof header.shared_memory === "boolean", "no kind of memory", header.shared_memory);
  header.variables.forEach(checkVariable);
  const bounds = new Map(header.variables.map(({ name, hi }) => [name, hi]));
  check(bounds.size === header.variables.length, "no names of their own of Variables", header.variables);
  const nbytes = header.buffers.map((spec) => checkBuffer(spec, bounds, header.arena));
  checkNames(header.buffers);
  for (const kernel of header.kernels) checkKernel(kernel, bounds);
  for (const launch of header.launches) {
    checkFields("launch", launch);
    const kernel = isCount(launch.kernel) ? header.kernels[launch.kernel] : undefined;
    checkLaunch(launch, kernel, nbytes, bounds);
  }
}

function checkVariable(variable: Variable): void {
  checkFields("variable", variable);
  const { name, lo, hi } = variable;
  const isRange = [lo, hi].every(Number.isSafeInteger) && lo <= hi;
  check(isText(name) && !THREAD_VARIABLES.includes(name) && isRange, "no Variable", variable);
}

/** The bytes of a buffer. `bounds`: the greatest value of each Variable. */
function checkBuffer(spec: BufferSpec, bounds: ReadonlyMap<string, number>, arena: number): number {
  checkFields("buffer", spec);
  const { role, size, offset, name, shape, dtype } = spec;
  check(ROLES.includes(role) && isText(name), "no buffer", spec);
  const bytes = isText(dtype) ? sizeOf(dtype) : undefined;
  check(bytes !== undefined && isCount(size) && isBytes(size * bytes), "no size of a buffer", spec);
  const nbytes = size * (bytes ?? 0);
  check(role === "scratch" ? isCount(offset) && offset + nbytes <= arena : offset === -1, "no place", spec);
  if (shape !== null) {
    const sizes = shape.map((n) => (typeof n === "string" ? bounds.get(n) : n));
    check(productOf(sizes) === size, "no shape", spec);
  }
  return nbytes;
}

/** Bytes per element of a dtype that a file may speak of. */
export function sizeOf(dtype: string): number | undefined {
  if (isDType(dtype)) return itemSize(dtype);
  return Object.hasOwn(OTHER_SIZES, dtype) ? OTHER_SIZES[dtype] : undefined;
}

/** The number of elements; undefined for no shape. */
function productOf(sizes: readonly unknown[]): number | undefined {
  let product = 1;
  for (const n of sizes) {
    if (!isCount(n) || product * n > MAX_BYTES) return undefined;
    product *= n;
  }
  return sizes.length <= MAX_RANK ? product : undefined;
}

function checkNames(buffers: readonly BufferSpec[]): void {
  const names = new Set<string>();
  for (const spec of buffers) {
    const { role, name } = spec;
    const key = `${role === "param" || role === "state" ? "value" : role} ${name}`;
    check(name === "" || !names.has(key), "a name used twice", spec);
    names.add(key);
  }
}

function checkKernel(kernel: Header["kernels"][number], bounds: ReadonlyMap<string, number>): void {
  checkFields("kernel", kernel);
  const { code, language, n_buffers: count, name, parallel, variables, workgroup, writes } = kernel;
  check(LANGUAGES.includes(language) && isText(name) && isPart(code), "no kernel", kernel);
  const isKnown = (variable: string): boolean => bounds.has(variable) || THREAD_VARIABLES.includes(variable);
  check(Array.isArray(variables) && variables.every(isKnown), "no variables", kernel);
  check(isCount(count, MAX_ARGUMENTS - variables.length), "no number of arguments", kernel);
  check(Array.isArray(writes) && writes.every((i) => isCount(i, count - 1)), "no pointers", kernel);
  check(parallel === variables.some((variable) => THREAD_VARIABLES.includes(variable)), "parallel", kernel);
  check(isCount(kernel.subgroup, MAX_SUBGROUP), "no size of a subgroup", kernel);
  check(
    GRID_LANGUAGES.includes(language) ? isWorkgroup(workgroup) : workgroup === null,
    "no workgroup",
    kernel,
  );
}

function isWorkgroup(size: unknown): boolean {
  if (!isTriple(size) || !size.every((n) => isCount(n, MAX_INVOCATIONS))) return false;
  const invocations = productOf(size) ?? 0;
  return invocations > 0 && invocations <= MAX_INVOCATIONS;
}

/** `nbytes`: the size of each buffer. */
function checkLaunch(
  launch: Launch,
  kernel: Header["kernels"][number] | undefined,
  nbytes: readonly number[],
  bounds: ReadonlyMap<string, number>,
): void {
  const { bindings, grid, barrier } = launch;
  check(Array.isArray(bindings) && kernel?.n_buffers === bindings.length, "no launch", launch);
  for (const binding of bindings) {
    checkFields("binding", binding);
    const { buffer, offset } = binding;
    check(isCount(buffer, nbytes.length - 1) && isCount(offset, nbytes[buffer]), "no place", launch);
  }
  const hasGrid = GRID_LANGUAGES.includes(kernel?.language ?? "");
  check(hasGrid ? isGrid(grid, bounds) : grid === null, "no grid", launch);
  check(typeof barrier === "boolean", "no barrier", launch);
}
