/** Starts Python with polygrad in it, in Node. */

import { mkdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { loadPyodide, version } from "pyodide";

import { ASSETS } from "../../loader/src/assets";
import { poolFor, threadVariables } from "../../loader/src/pool";
import type { CommonOptions, Polygrad } from "../../loader/src/polygrad";
import { startPolygrad } from "../../loader/src/start";
import { cacheFolder, diskStore } from "./disk_store";
import { startWorker } from "./engine";
import { GpuInWorker } from "./gpu";
import { loadHub } from "./load_hub";
import { readBytes } from "./read_bytes";

export interface LoadOptions extends CommonOptions {
  /** A wheel of polygrad: its bytes, or its path. The default is this package's own. */
  wheel?: string | Uint8Array<ArrayBuffer>;
  /**
   * The folder for a snapshot of Python's memory, compiled kernels, bytecode of wheels, which later starts use, and files of
   * models from the network. The default is a folder in the user's cache; `false` stores nothing. The variable `POLYGRAD_CACHE`, of this process or
   * in `env`, is another folder for kernels; with 0 they are not stored.
   */
  cacheDir?: string | false;
}

/** The engine and its version. Deno and Bun report a version of Node's and of V8's, too, which is not what they are. */
function engineName(): string {
  const { node, v8, deno, bun } = process.versions;
  const other = deno === undefined ? (bun === undefined ? "" : ` bun ${bun}`) : ` deno ${deno}`;
  return `node ${node} v8 ${v8}${other} ${process.arch} ${process.platform}`;
}

/** The path of a file of the build, which lies beside this one. */
function asset(name: string): string {
  return fileURLToPath(new URL(`./python/${name}`, import.meta.url));
}

/** The folder of compiled kernels, which is made if necessary; undefined if kernels are not stored. */
function kernelFolder({ cacheDir, env }: LoadOptions): string | undefined {
  if (cacheDir === false) return undefined;
  const asked = env?.POLYGRAD_CACHE ?? process.env.POLYGRAD_CACHE;
  if (asked === "" || asked === "0") return undefined;
  const folder = resolve(asked ?? (cacheDir === undefined ? cacheFolder() : join(cacheDir, "kernels")));
  try {
    mkdirSync(folder, { recursive: true });
    return folder;
  } catch {
    return undefined;
  }
}

/** Start Python with polygrad installed. */
export async function loadPolygrad(options: LoadOptions = {}): Promise<Polygrad> {
  const processors = availableParallelism();
  const pool = poolFor(options, processors, startWorker);
  const { wheel, cacheDir } = options;
  return startPolygrad(
    {
      loadPyodide,
      version,
      // With source maps Pyodide does not find its own folder.
      indexURL: fileURLToPath(new URL(".", import.meta.resolve("pyodide"))),
      createModule: import("pyodide/pyodide.asm.mjs").then((module) => module.default),
      stdLibURL: asset(ASSETS.stdlib),
      archive: () => readBytes(asset(ASSETS.package)),
      wheel: typeof wheel === "string" ? readBytes(wheel) : wheel && Promise.resolve(wheel),
      readStdlib: () => readFileSync(fileURLToPath(import.meta.resolve("pyodide/python_stdlib.zip"))),
      readApplications: () => readFileSync(asset(ASSETS.applications)),
      engine: engineName(),
      openGpu: () => GpuInWorker.open(),
      loadHub,
      store: cacheDir === false ? undefined : diskStore(cacheDir),
      kernels: kernelFolder(options),
    },
    options,
    { HOME: "/home/pyodide", ...threadVariables(options, processors, pool) },
    pool,
  );
}
