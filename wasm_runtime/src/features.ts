/** The features of this engine's WebAssembly, probed with one small module for each. */

import { CompileError } from "./errors";

/** The host decides about "threads", not the engine: they need a memory that workers may share. */
export type Feature = Probed | "threads";

type Probed = "simd" | "relaxed-simd" | "relaxed-dot";

/** A module with one function of type () -> i32, exported as "f", whose body is `code`. */
function module(code: readonly number[]): Uint8Array<ArrayBuffer> {
  const body = [0, ...code, 0x0b];
  return new Uint8Array([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...[1, 5, 1, 0x60, 0, 1, 0x7f],
    ...[3, 2, 1, 0],
    ...[7, 5, 1, 1, 0x66, 0, 0],
    ...[10, body.length + 2, 1, body.length, ...body],
  ]);
}

/** f32x4.splat of an f32 with these bytes */
function splat(...bytes: [number, number, number, number]): number[] {
  return [0x43, ...bytes, 0xfd, 19];
}

// (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, or 0 if the product is rounded first
const FUSED = [
  ...splat(0, 8, 0x80, 0x3f), // 1 + 2^-12
  ...splat(0, 8, 0x80, 0x3f),
  ...splat(0, 0x10, 0x80, 0xbf), // -(1 + 2^-11)
  ...[0xfd, 0x85, 2], // f32x4.relaxed_madd
  ...[0xfd, 27, 0], // i32x4.extract_lane 0
];
const COUNTED = [...splat(0, 0, 0, 0), 0xfd, 98, 0xfd, 27, 0]; // i8x16.popcnt, i32x4.extract_lane 0

/** i8x16.splat of a byte from 0 to 63 */
function bytes(value: number): number[] {
  return [0x41, value, 0xfd, 15];
}

/** i32x4.relaxed_dot_i8x16_i7x16_add_s */
const DOT = [0xfd, 0x93, 2] as const;

/** 4 * 3 * 5 + `summand`, by a dot product of relaxed SIMD */
function dot(summand: number): number[] {
  return [...bytes(3), ...bytes(5), 0x41, summand, 0xfd, 17, ...DOT, 0xfd, 27, 0];
}

let probes = 0;

/**
 * Whether the engine computes the dot products of relaxed SIMD as specified; undefined if it has none. The baseline compiler
 * of Node 20's V8 loses the summand. Engines keep what they compiled by its bytes, so probes differ: one may follow a change
 * of flags.
 */
function dotsAreRight(): boolean | undefined {
  const summand = 1 + (probes++ % 63);
  return WebAssembly.validate(module(dot(summand))) ? run(dot(summand)) === 60 + summand : undefined;
}

/** Whether this engine has the dot products of relaxed SIMD, and computes them wrongly. */
export function hasWrongDots(): boolean {
  return dotsAreRight() === false;
}

let repair = (): void => undefined;

/** Call `how` before the first module with dot products that this engine computes wrongly. Then it has to compute them rightly. */
export function repairDotsBy(how: () => void): void {
  repair = how;
}

/**
 * To be called before a module is compiled. Throws CompileError if it has dot products of relaxed SIMD that this engine
 * computes wrongly, and the host cannot repair them.
 */
export function requireDots(code: Uint8Array): void {
  if (!mayHaveDots(code) || !hasWrongDots()) return;
  repair();
  if (!hasWrongDots()) return;
  throw new CompileError(
    "load: expected an engine whose dot products of relaxed SIMD are right, got one with a known error: " +
      "use a newer browser, or export the model with float32 activations",
  );
}

/** Whether the bytes of the instruction are somewhere in a module. In rare cases they are a part of a constant. */
function mayHaveDots(code: Uint8Array): boolean {
  const [first, second, third] = DOT;
  for (let i = code.indexOf(first); i >= 0; i = code.indexOf(first, i + 1)) {
    if (code[i + 1] === second && code[i + 2] === third) return true;
  }
  return false;
}

/** The features this engine has. Relaxed SIMD is one only if its multiply-add is fused, because kernels of `pow`,
 * `exp` and `sin` rely on that. Engines round the product on a processor that has no fused multiply-add. Its dot product of
 * bytes is a feature of its own, because it is wrong in some engines. */
export function detectFeatures(): Probed[] {
  const features: Probed[] = [];
  if (WebAssembly.validate(module(COUNTED))) features.push("simd");
  if (WebAssembly.validate(module(FUSED)) && run(FUSED) !== 0) features.push("relaxed-simd");
  if (dotsAreRight()) features.push("relaxed-dot");
  return features;
}

function run(code: readonly number[]): number {
  const { f } = new WebAssembly.Instance(new WebAssembly.Module(module(code))).exports;
  return (f as () => number)();
}
