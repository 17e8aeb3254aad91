/** Small kernels and Programs, written by hand. */

import { createHash } from "node:crypto";

import type { Part } from "../src/parts";
import type { BufferSpec, KernelSpec, Launch, Variable } from "../src/program";

const I32 = 0x7f;

function section(id: number, body: readonly number[]): number[] {
  return [id, body.length, ...body];
}

function text(name: string): number[] {
  return [name.length, ...new TextEncoder().encode(name)];
}

/** The limits of a memory: 1 page or more; up to 65536, and shared. */
const UNSHARED = [0, 1];
const SHARED = [3, 1, 0x80, 0x80, 4];

/** A module that imports `env.memory` and exports `name`, a function of `params` i32 whose body is `code`. */
export function kernelModule(
  name: string,
  params: number,
  code: readonly number[],
  shared = false,
): Uint8Array<ArrayBuffer> {
  const body = [0, ...code, 0x0b];
  return new Uint8Array([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, params, ...Array<number>(params).fill(I32), 0]),
    ...section(2, [1, ...text("env"), ...text("memory"), 2, ...(shared ? SHARED : UNSHARED)]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...text(name), 0, 0]),
    ...section(10, [1, body.length, ...body]),
  ]);
}

const get = (i: number): number[] => [0x20, i];
const LOAD = [0x28, 2, 0];
const STORE = [0x36, 2, 0];
const ADD = 0x6a;

/** out[0] = in[0] + n */
export const ADD_KERNEL = kernelModule("add", 3, [...get(0), ...get(1), ...LOAD, ...get(2), ADD, ...STORE]);
/** out[0] = in[0] + in[0] */
export const DOUBLE_KERNEL = kernelModule("double", 2, [
  ...[...get(0), ...get(1), ...LOAD, ...get(1)],
  ...[...LOAD, ADD, ...STORE],
]);
/** unreachable */
export const TRAP_KERNEL = kernelModule("boom", 0, [0]);

interface Parts {
  buffers: BufferSpec[];
  kernels: KernelSpec[];
  launches: Launch[];
  variables: Variable[];
  arena: number;
  device: string;
  threads: number;
  shared_memory: boolean;
  driver?: Uint8Array;
  values?: Uint8Array;
}

const WASM = { language: "wasm", writes: [0], parallel: false, workgroup: null, subgroup: 0 } as const;

/** out = (in + n) * 2 with the sum in scratch; the second element of `in` and `out` is used. */
export const CHAIN: Parts = {
  device: "WASM",
  threads: 1,
  shared_memory: false,
  buffers: [
    { size: 2, dtype: "int32", role: "input", offset: -1, name: "x", shape: [1, 2] },
    { size: 1, dtype: "int32", role: "scratch", offset: 64, name: "", shape: null },
    { size: 2, dtype: "int32", role: "output", offset: -1, name: "y", shape: [2] },
  ],
  kernels: [
    { name: "add", code: ADD_KERNEL, n_buffers: 2, variables: ["n"], ...WASM },
    { name: "double", code: DOUBLE_KERNEL, n_buffers: 2, variables: [], ...WASM },
  ],
  launches: [
    {
      kernel: 0,
      bindings: [
        { buffer: 1, offset: 0 },
        { buffer: 0, offset: 4 },
      ],
      grid: null,
      barrier: false,
    },
    {
      kernel: 1,
      bindings: [
        { buffer: 2, offset: 4 },
        { buffer: 1, offset: 0 },
      ],
      grid: null,
      barrier: false,
    },
  ],
  variables: [{ name: "n", lo: -10, hi: 10 }],
  arena: 128,
};

/** A parallel kernel of a captured Program: its code is in the driver. */
export const PARALLEL_KERNEL: KernelSpec = {
  ...{ name: "parallel", code: new Uint8Array(), n_buffers: 2, variables: ["thread", "threads"] },
  ...{ ...WASM, parallel: true },
};

const at = (offset: number): number[] => [0x28, 2, offset];

/** All of CHAIN at once: the table is in, scratch, out, the arena, n. */
export const CHAIN_DRIVER = kernelModule("run", 1, [
  ...[...get(0), ...at(8), ...get(0), ...at(0), ...at(4), ...get(0), ...at(16), ADD],
  ...[0x41, 2, 0x6c, 0x36, 2, 4],
]);

const BLOCK = 4 << 20;

/** What a header says of a part of a file. */
export function partOf(bytes: Uint8Array): Part {
  const sha256: string[] = [];
  for (let at = 0; at < bytes.length; at += BLOCK) {
    sha256.push(
      createHash("sha256")
        .update(bytes.subarray(at, at + BLOCK))
        .digest("hex"),
    );
  }
  return { bytes: bytes.length, sha256 };
}

/** A file up to its parts. `header`: the text, or what it says. */
export function headerBytes(magic: string, version: number, header: unknown): Uint8Array {
  const text = new TextEncoder().encode(typeof header === "string" ? header : JSON.stringify(header));
  const bytes = new Uint8Array(44 + text.length);
  bytes.set(new TextEncoder().encode(magic));
  new DataView(bytes.buffer).setUint32(4, version, true);
  new DataView(bytes.buffer).setUint32(8, text.length, true);
  bytes.set(createHash("sha256").update(text).digest(), 12);
  bytes.set(text, 44);
  return bytes;
}

/** The text of a file's header. */
export function headerText(file: Uint8Array): string {
  const length = new DataView(file.buffer, file.byteOffset).getUint32(8, true);
  return new TextDecoder().decode(file.subarray(44, 44 + length));
}

/** A file with another text as header. */
export function withHeader(file: Uint8Array, text: string): Uint8Array {
  const view = new DataView(file.buffer, file.byteOffset);
  const magic = String.fromCharCode(...file.subarray(0, 4));
  const start = headerBytes(magic, view.getUint32(4, true), text);
  return concatenated([start, file.subarray(44 + view.getUint32(8, true))]);
}

export const concatenated = (parts: readonly Uint8Array[]): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => [...part]));

/** The bytes of a Program, as `Program.to_bytes` of Python writes them. */
export function programBytes(parts: Partial<Parts> = {}, version = 9): Uint8Array {
  const { kernels, driver = new Uint8Array(), values = new Uint8Array(), ...rest } = { ...CHAIN, ...parts };
  const specs = kernels.map((kernel) => ({ ...kernel, code: partOf(kernel.code) }));
  const described = { driver: partOf(driver), values: partOf(values) };
  const start = headerBytes("PGRD", version, { target: "test", ...rest, kernels: specs, ...described });
  return concatenated([start, ...kernels.map(({ code }) => code), driver, values]);
}
