/** Buffers of Programs, wherever their memory is: what they are, and the checks before one is used. */

import { ARRAYS, dtypeOf, type DType } from "./arrays";
import { ProgramError } from "./errors";
import type { BufferSpec, Program } from "./program";

/** The typed array of a buffer's elements. */
export function arrayOf(spec: BufferSpec): (typeof ARRAYS)[DType] {
  return ARRAYS[dtypeOf(spec.dtype, "buffer")];
}

export const bytesOf = (spec: BufferSpec): number => spec.size * arrayOf(spec).BYTES_PER_ELEMENT;

/** Whether a buffer is shared by its name. */
export function isValue({ role, name }: BufferSpec): boolean {
  return (role === "param" || role === "state") && name !== "";
}

/** Buffer `number` of a Program. Throws ProgramError when there is none. */
export function bufferOf({ buffers }: Program, number: number): BufferSpec {
  const spec = buffers[number];
  if (spec !== undefined) return spec;
  throw new ProgramError(`buffer: expected 0 to ${buffers.length - 1}, got ${number}`);
}

/** The parameter or state `name` of a memory. Throws ProgramError when there is none. */
export function valueNamed<T>(values: ReadonlyMap<string, T>, name: string): T {
  const value = values.get(name);
  if (value !== undefined) return value;
  throw new ProgramError(`values: expected a parameter or state, got ${name}`);
}

/** Throws ProgramError unless `data` fits a buffer from byte `offset` on. `name`: of the buffer, or its number. */
export function checkPart(
  spec: BufferSpec,
  name: string | number,
  data: ArrayBufferView,
  offset: number,
): void {
  const end = offset + data.byteLength;
  if (end <= bytesOf(spec)) return;
  throw new ProgramError(`buffer ${name}: expected ${bytesOf(spec)} bytes at most, got ${end}`);
}

/** Throws ProgramError unless `data` has as many bytes as a buffer. */
export function checkWhole(spec: BufferSpec, number: number, data: ArrayBufferView): void {
  if (data.byteLength === bytesOf(spec)) return;
  throw new ProgramError(
    `buffer ${number}: expected ${spec.size} x ${spec.dtype}, ${bytesOf(spec)} bytes, got ${data.byteLength} bytes`,
  );
}
