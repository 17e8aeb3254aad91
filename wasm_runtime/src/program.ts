/** Reads the bytes of a Program; the format is described in `polygrad/runtime/program.py`. */

import { ProgramError } from "./errors";
import type { PieceReader } from "./pieces";

const MAGIC = "PGRD";
const VERSION = 8;
/** The bytes before the header. */
export const PREFIX = 12;

const ROLES = ["input", "output", "param", "state", "scratch"] as const;
const LANGUAGES = ["wasm", "object", "library", "linear", "wgsl", "cuda", "msl"] as const;
const GRID_LANGUAGES: readonly string[] = ["wgsl", "cuda", "msl"];

/**
 * The variables of a parallel kernel: the number of the thread that runs it, the number of threads, the number of the
 * part of its work that a call does, and the number of parts. This is their order in a `LaunchList`.
 */
export const THREAD_VARIABLES: readonly string[] = ["thread", "threads", "part", "parts"];

export type Role = (typeof ROLES)[number];

/** A number, or the name of a Variable. */
export type Size = number | string;

/**
 * `size` elements of `dtype`. Scratch lies in the arena at byte `offset`. `shape` is null if it is not known; with
 * Variables in it, there may be fewer elements than `size`.
 */
export interface BufferSpec {
  readonly size: number;
  readonly dtype: string;
  readonly role: Role;
  readonly offset: number;
  readonly name: string;
  readonly shape: readonly Size[] | null;
}

/**
 * One compiled function of `n_buffers` pointers, then its variables. It writes through the pointers `writes`. All
 * threads run a parallel function. `workgroup`: the invocations of a workgroup along x, y and z, for source text of
 * GPUs, else null. `subgroup`: the invocations that a subgroup must have; 0: any number.
 */
export interface KernelSpec {
  readonly name: string;
  readonly code: Uint8Array;
  readonly n_buffers: number;
  readonly variables: readonly string[];
  readonly language: (typeof LANGUAGES)[number];
  readonly writes: readonly number[];
  readonly parallel: boolean;
  readonly workgroup: readonly [number, number, number] | null;
  readonly subgroup: number;
}

/** A number of workgroups: a number, the name of a Variable, or an operation on sizes (see `gridSize`). */
export type GridSize = number | string | readonly [string, GridSize] | readonly [string, GridSize, GridSize];

/**
 * `grid`: the workgroups along x, y and z, for kernels that are source text of GPUs, else null. `barrier`: all threads
 * complete all earlier launches before a thread starts this one.
 */
export interface Launch {
  readonly kernel: number;
  readonly bindings: readonly { readonly buffer: number; readonly offset: number }[];
  readonly grid: readonly [GridSize, GridSize, GridSize] | null;
  readonly barrier: boolean;
}

/** A symbolic integer, `lo` to `hi`, both included. */
export interface Variable {
  readonly name: string;
  readonly lo: number;
  readonly hi: number;
}

export interface Program {
  readonly device: string;
  readonly target: string;
  readonly buffers: readonly BufferSpec[];
  readonly kernels: readonly KernelSpec[];
  readonly launches: readonly Launch[];
  readonly variables: readonly Variable[];
  readonly arena: number;
  /** The most threads of a run; 1 if no kernel is parallel. */
  readonly threads: number;
  /** Whether its modules import a shared memory. */
  readonly shared_memory: boolean;
  /** A module with all kernels, whose function `run` makes all launches; or empty. */
  readonly driver: Uint8Array;
  /** A safetensors file with the values of parameters and state, by name; or empty. */
  readonly values: Uint8Array;
}

type Header = Omit<Program, "kernels" | "driver" | "values"> & {
  readonly driver: number;
  readonly values: number;
  readonly kernels: readonly (Omit<KernelSpec, "code"> & { readonly code: number })[];
};

/** The Program in `data`, whose code and values are parts of `data`. Throws ProgramError for anything else. */
export function readProgram(data: Uint8Array): Program {
  const codeStart = PREFIX + headerLength(data.subarray(0, PREFIX));
  const header = readHeader(data.subarray(PREFIX, codeStart));
  const end = codeStart + codeLength(header) + header.values;
  if (end !== data.length) {
    throw new ProgramError(`Program: expected ${end} bytes, got ${data.length}: the file is damaged`);
  }
  return withCode(header, data.subarray(codeStart));
}

/** Whether a file that begins with these bytes is a Program. */
export function isProgram(prefix: Uint8Array): boolean {
  return prefix.length === PREFIX && String.fromCharCode(...prefix.subarray(0, 4)) === MAGIC;
}

/** A Program without its values, and their length, from a file whose first `PREFIX` bytes are known. Rejects with ProgramError. */
export async function readProgramLater(
  prefix: Uint8Array,
  reader: PieceReader,
): Promise<{ readonly program: Program; readonly values: number }> {
  const header = readHeader(await reader.take(headerLength(prefix)));
  const code = await reader.take(codeLength(header));
  if (code.length < codeLength(header)) {
    throw new ProgramError(
      `Program: expected code of ${codeLength(header)} bytes, got ${code.length}: the file is damaged`,
    );
  }
  return { program: withCode({ ...header, values: 0 }, code), values: header.values };
}

/** The length of the header, by the first `PREFIX` bytes of a file. */
function headerLength(prefix: Uint8Array): number {
  if (!isProgram(prefix)) {
    const magic = String.fromCharCode(...prefix.subarray(0, 4));
    throw new ProgramError(`Program: expected bytes starting ${MAGIC}, got ${JSON.stringify(magic)}`);
  }
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.byteLength);
  const version = view.getUint32(4, true);
  if (version !== VERSION) {
    throw new ProgramError(`Program: expected version ${VERSION}, got ${version}: export it again`);
  }
  return view.getUint32(8, true);
}

function codeLength({ kernels, driver }: Header): number {
  return kernels.reduce((sum, { code }) => sum + code, driver);
}

/** A Program of its header and the bytes that follow it. */
function withCode(header: Header, bytes: Uint8Array): Program {
  let end = 0;
  const take = (length: number): Uint8Array => bytes.subarray(end, (end += length));
  const kernels = header.kernels.map((kernel) => ({ ...kernel, code: take(kernel.code) }));
  return { ...header, kernels, driver: take(header.driver), values: take(header.values) };
}

function readHeader(bytes: Uint8Array): Header {
  try {
    const header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as Header;
    checkHeader(header);
    return header;
  } catch (cause) {
    throw new ProgramError(`Program: expected a whole header, got damaged bytes (${String(cause)})`, {
      cause,
    });
  }
}

function check(holds: boolean, what: string, got: unknown): void {
  if (!holds) throw new TypeError(`${what}: ${JSON.stringify(got)}`);
}

const isCount = (n: unknown): n is number => Number.isSafeInteger(n) && (n as number) >= 0;
const isText = (text: unknown): text is string => typeof text === "string";

const isTriple = (list: unknown): list is readonly unknown[] => Array.isArray(list) && list.length === 3;

/** Integer operations of grids' sizes. IDIV and MOD round to minus infinity. */
const UNARY: Readonly<Record<string, (a: number) => number>> = { NEG: (a) => -a };
const BINARY: Readonly<Record<string, (a: number, b: number) => number>> = {
  ADD: (a, b) => a + b,
  SUB: (a, b) => a - b,
  MUL: (a, b) => a * b,
  IDIV: (a, b) => Math.floor(a / b),
  MOD: (a, b) => a - b * Math.floor(a / b),
  MAX: Math.max,
  SHL: (a, b) => a * 2 ** b,
  SHR: (a, b) => Math.floor(a / 2 ** b),
  AND: (a, b) => Number(BigInt(a) & BigInt(b)),
};

/** The value of a grid's size for these values of the Variables. */
export function gridSize(size: GridSize, variables: Readonly<Record<string, number>>): number {
  if (typeof size === "number") return size;
  let made: number | undefined;
  if (typeof size === "string") {
    made = variables[size];
  } else {
    const [op, ...operands] = size;
    const [a = NaN, b = NaN] = operands.map((x) => gridSize(x, variables));
    made = operands.length === 1 ? UNARY[op]?.(a) : BINARY[op]?.(a, b);
  }
  if (made === undefined) {
    throw new ProgramError(`Program: expected a size of a grid, got ${JSON.stringify(size)}`);
  }
  return made;
}

/** Throws ProgramError unless `variables` has all of the Program's, in their bounds. */
export function checkVariables(program: Program, variables: Readonly<Record<string, number>>): void {
  for (const { name, lo, hi } of program.variables) {
    const value = variables[name];
    if (value === undefined || !Number.isInteger(value) || value < lo || value > hi) {
      throw new ProgramError(`run: expected variable ${name} from ${lo} to ${hi}, got ${value ?? "none"}`);
    }
  }
}

/** Whether this is a size of a grid over these Variables. A size that is a plain number must be positive. */
function isGridSize(size: unknown, variables: ReadonlyMap<string, number>, top = true): boolean {
  if (typeof size === "string") return variables.has(size);
  if (!Array.isArray(size)) return Number.isSafeInteger(size) && (!top || (size as number) > 0);
  const [op, ...operands] = size as readonly unknown[];
  const operations = operands.length === 1 ? UNARY : operands.length === 2 ? BINARY : {};
  return (
    isText(op) && Object.hasOwn(operations, op) && operands.every((x) => isGridSize(x, variables, false))
  );
}

/** The fields of the objects in a header; all are required, and there are no others. */
const FIELDS = {
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

function checkFields(kind: keyof typeof FIELDS, value: object): void {
  check(Object.keys(value).sort().join() === FIELDS[kind].join(), `no ${kind}`, value);
}

/** Throws TypeError for a header that contradicts itself. */
function checkHeader(header: Header): void {
  for (const part of [header.buffers, header.kernels, header.launches, header.variables]) {
    check(Array.isArray(part), "no list", part);
  }
  check([header.device, header.target].every(isText), "no device and target", header.device);
  check([header.arena, header.driver, header.values].every(isCount), "no lengths", header.arena);
  check(isCount(header.threads) && header.threads > 0, "no number of threads", header.threads);
  check(typeof header.shared_memory === "boolean", "no kind of memory", header.shared_memory);
  for (const variable of header.variables) {
    checkFields("variable", variable);
    const { name, lo, hi } = variable;
    check(isText(name) && [lo, hi].every(Number.isSafeInteger) && lo <= hi, "no Variable", variable);
  }
  const bounds = new Map(header.variables.map(({ name, hi }) => [name, hi]));
  const names = new Set<string>();
  for (const spec of header.buffers) {
    checkFields("buffer", spec);
    const { role, size, offset, name, shape } = spec;
    check(ROLES.includes(role) && isCount(size) && isText(name) && isText(spec.dtype), "no buffer", spec);
    check(role === "scratch" ? isCount(offset) && offset <= header.arena : offset === -1, "no place", spec);
    const key = `${role === "param" || role === "state" ? "value" : role} ${name}`;
    check(name === "" || !names.has(key), "a name used twice", spec);
    names.add(key);
    if (shape === null) continue;
    const sizes = shape.map((n) => (typeof n === "string" ? bounds.get(n) : n));
    check(sizes.every(isCount) && sizes.reduce((a, b) => a * b, 1) === size, "no shape", spec);
  }
  for (const kernel of header.kernels) {
    checkFields("kernel", kernel);
    const { code, language, n_buffers: count, name, parallel, variables, workgroup, writes } = kernel;
    check(LANGUAGES.includes(language) && isText(name) && isCount(code), "no kernel", kernel);
    const isKnown = (variable: string): boolean =>
      bounds.has(variable) || THREAD_VARIABLES.includes(variable);
    check(isCount(kernel.subgroup), "no size of a subgroup", kernel);
    check(isCount(count) && Array.isArray(variables) && variables.every(isKnown), "no variables", kernel);
    check(Array.isArray(writes) && writes.every((i) => isCount(i) && i < count), "no pointers", kernel);
    const isSize = isTriple(workgroup) && workgroup.every((n) => isCount(n) && n > 0);
    check(GRID_LANGUAGES.includes(language) ? isSize : workgroup === null, "no workgroup", kernel);
    check(parallel === variables.some((variable) => THREAD_VARIABLES.includes(variable)), "parallel", kernel);
  }
  const isParallel = header.kernels.some(({ parallel }) => parallel);
  check(header.threads === 1 || isParallel, "threads and no parallel kernel", header.threads);
  for (const launch of header.launches) {
    checkFields("launch", launch);
    for (const binding of launch.bindings) checkFields("binding", binding);
    const kernel = isCount(launch.kernel) ? header.kernels[launch.kernel] : undefined;
    check(kernel?.n_buffers === launch.bindings.length, "no launch", launch);
    const isBound = ({ buffer, offset }: Launch["bindings"][number]): boolean =>
      isCount(buffer) && buffer < header.buffers.length && isCount(offset);
    check(launch.bindings.every(isBound), "no buffers", launch);
    const isGrid = isTriple(launch.grid) && launch.grid.every((size) => isGridSize(size, bounds));
    check(GRID_LANGUAGES.includes(kernel?.language ?? "") ? isGrid : launch.grid === null, "no grid", launch);
    check(typeof launch.barrier === "boolean", "no barrier", launch);
  }
}
