/** Compiles zips of Python sources to archives of bytecode, by the Python that will import them. */

import type { PyodideAPI } from "pyodide";

import { fileSystem, withFunctions, type PyProxy } from "./pyodide_types";
import BUNDLE from "./python/bundle.py";

export interface BundleOptions {
  /** Only the files of these names. */
  keep?: readonly string[];
  /** Files of modules whose sources are left out; the archive has their bytecode alone. */
  withoutText?: readonly string[];
  /** More files, by name. */
  extra?: Record<string, Uint8Array>;
}

const SOURCE = "/tmp/polygrad-source.zip";

/** The zip `source` as an archive of bytecode, for the path `place` in Python's file system. */
export function bundle(
  pyodide: PyodideAPI,
  source: Uint8Array,
  place: string,
  { keep, withoutText = [], extra = {} }: BundleOptions = {},
): Uint8Array<ArrayBuffer> {
  fileSystem(pyodide).writeFile(SOURCE, source);
  return withFunctions(pyodide, BUNDLE, ["bundle"], (make) => {
    const names = keep && (pyodide.toPy(keep) as PyProxy);
    const files = pyodide.toPy(extra) as PyProxy;
    const textless = pyodide.toPy(withoutText) as PyProxy;
    const made = make(SOURCE, place, names, textless, files) as PyProxy;
    try {
      return Uint8Array.from(made.toJs() as Uint8Array);
    } finally {
      for (const proxy of [made, files, textless]) proxy.destroy();
      names?.destroy();
    }
  });
}
