/** The features of this engine's WebAssembly, probed by validating one small module for each. */

/** The host decides about "threads", not the engine: they need a memory that workers may share. */
export type Feature = Probed | "threads";

type Probed = "simd" | "relaxed-simd";

/** A module with one function of type () -> v128 whose body is `code`. */
function vectorModule(code: readonly number[]): Uint8Array<ArrayBuffer> {
  const body = [0, ...code, 0x0b];
  return new Uint8Array([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...[1, 5, 1, 0x60, 0, 1, 0x7b],
    ...[3, 2, 1, 0],
    ...[10, body.length + 2, 1, body.length, ...body],
  ]);
}

const SPLAT = [0x41, 0, 0xfd, 15]; // i32.const 0, i8x16.splat

const PROBES: Readonly<Record<Probed, readonly number[]>> = {
  simd: [...SPLAT, 0xfd, 98], // i8x16.popcnt
  "relaxed-simd": [...SPLAT, ...SPLAT, ...SPLAT, 0xfd, 0x85, 2], // f32x4.relaxed_madd
};

/** The features this engine has. */
export function detectFeatures(): Probed[] {
  return (Object.keys(PROBES) as Probed[]).filter((name) => WebAssembly.validate(vectorModule(PROBES[name])));
}
