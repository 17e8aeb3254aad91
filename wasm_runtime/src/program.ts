/** Reads the bytes of a Program; the format is described in `polygrad/runtime/program.py`. */

import { ProgramError } from "./errors";

const MAGIC = "PGRD";
const VERSION = 2;
const PREFIX = 12;

export type Role = "input" | "output" | "param" | "state" | "scratch";

/** `size` elements of `dtype`; scratch lies in the arena at byte `offset`. */
export interface BufferSpec {
  readonly size: number;
  readonly dtype: string;
  readonly role: Role;
  readonly offset: number;
}

/** One compiled function of `n_buffers` pointers, then its variables. */
export interface KernelSpec {
  readonly name: string;
  readonly code: Uint8Array;
  readonly n_buffers: number;
  readonly variables: readonly string[];
}

export interface Launch {
  readonly kernel: number;
  readonly bindings: readonly { readonly buffer: number; readonly offset: number }[];
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
  /** A module that holds all kernels, and whose function `run` makes all launches; or empty. */
  readonly driver: Uint8Array;
}

type Header = Omit<Program, "kernels" | "driver"> & {
  readonly driver: number;
  readonly kernels: readonly (Omit<KernelSpec, "code"> & { readonly code: number })[];
};

/** The Program in `data`. Throws ProgramError for anything else. */
export function readProgram(data: Uint8Array): Program {
  const magic = String.fromCharCode(...data.subarray(0, 4));
  if (magic !== MAGIC || data.length < PREFIX) {
    throw new ProgramError(`Program: expected bytes starting ${MAGIC}, got ${JSON.stringify(magic)}`);
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const version = view.getUint32(4, true);
  if (version !== VERSION) {
    throw new ProgramError(`Program: expected version ${VERSION}, got ${version}: export it again`);
  }
  const codeStart = PREFIX + view.getUint32(8, true);
  const header = readHeader(data.subarray(PREFIX, codeStart));
  let at = codeStart;
  const kernels = header.kernels.map((kernel) => {
    const code = data.subarray(at, (at += kernel.code));
    return { ...kernel, code };
  });
  const driver = data.subarray(at, (at += header.driver));
  if (at !== data.length) {
    throw new ProgramError(`Program: expected ${at} bytes, got ${data.length}: the file is damaged`);
  }
  return { ...header, kernels, driver };
}

function readHeader(bytes: Uint8Array): Header {
  try {
    const header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as Header;
    for (const part of [header.buffers, header.kernels, header.launches, header.variables]) {
      if (!Array.isArray(part)) throw new TypeError("a list is missing");
    }
    return header;
  } catch (cause) {
    throw new ProgramError(`Program: expected a whole header, got damaged bytes (${String(cause)})`, {
      cause,
    });
  }
}
