/** Reads the bytes of a Program; the format is described in `polygrad/runtime/program.py`. */

import { ProgramError } from "./errors";
import type { GridSize } from "./grid";
import { PREFIX, readHeader, takeParts, type Part } from "./parts";
import { PieceReader } from "./pieces";
import { checkHeader, type Header, type LANGUAGES, type ROLES } from "./program_checks";

const MAGIC = "PGRD";
const VERSION = 9;
const FORMAT = { what: "Program", magic: MAGIC, versions: [VERSION] };

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

/** The Program in `data`. Rejects with ProgramError for anything else. */
export async function readProgram(data: Uint8Array): Promise<Program> {
  const reader = new PieceReader(data);
  const { program, values } = await readProgramLater(await reader.take(PREFIX), reader);
  const [bytes = new Uint8Array()] = await takeParts(reader, [values], ["values"]);
  await reader.end();
  return { ...program, values: bytes };
}

/**
 * A Program without its values, and what its header says of them, from a file whose first `PREFIX` bytes are known.
 * Rejects with ProgramError.
 */
export async function readProgramLater(
  prefix: Uint8Array,
  reader: PieceReader,
): Promise<{ readonly program: Program; readonly values: Part }> {
  const header = await readHeader<Header>(prefix, reader, FORMAT, checkHeader);
  const parts = [...header.kernels.map(({ code }) => code), header.driver];
  const names = [...header.kernels.map(({ name }) => `code of kernel ${name}`), "driver"];
  const codes = await takeParts(reader, parts, names);
  const none = new Uint8Array();
  const kernels = header.kernels.map((kernel, i) => ({ ...kernel, code: codes[i] ?? none }));
  const driver = codes.at(-1) ?? none;
  return { program: { ...header, kernels, driver, values: none }, values: header.values };
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
