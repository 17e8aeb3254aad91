/** The files that the build makes for this very code, by names that change with their content. */

export interface Assets {
  /** The version of Pyodide whose Python compiled the bytecode. */
  readonly pyodide: string;
  /** The part of the standard library that starting takes. */
  readonly stdlib: string;
  /** polygrad itself, but for what stands on tensors and training. */
  readonly package: string;
  /** The packages of polygrad that come when one of them is imported. */
  readonly applications: string;
  /** The SHA-256 of the wheel that `package` was made of. */
  readonly wheel: string;
}

// `scripts/build.mjs` puts it here.
declare const POLYGRAD_ASSETS: Assets;

export const ASSETS: Assets = POLYGRAD_ASSETS;
