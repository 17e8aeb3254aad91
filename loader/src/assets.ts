/** The files that the build makes for this code. Their names change with their content. */

export interface Assets {
  /** The version of Pyodide whose Python compiled the bytecode. */
  readonly pyodide: string;
  /** The part of the standard library that a start needs. */
  readonly stdlib: string;
  /** polygrad without its applications. */
  readonly package: string;
  /** The packages of polygrad that are fetched when one of them is imported. */
  readonly applications: string;
  /** The SHA-256 of the wheel from which `package` was made. */
  readonly wheel: string;
}

// `scripts/build.mjs` puts them here.
declare const POLYGRAD_ASSETS: Assets;
declare const POLYGRAD_RELEASE: string;

export const ASSETS: Assets = POLYGRAD_ASSETS;

/** The version of the npm package. */
export const RELEASE: string = POLYGRAD_RELEASE;
