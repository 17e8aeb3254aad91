/** Turns zips of Python sources into archives of bytecode, by the Python that is going to import them. */

import type { PyodideAPI } from "pyodide";

import { fileSystem, withFunctions, type PyProxy } from "./pyodide_types";
import BUNDLE from "./python/bundle.py";

export interface BundleOptions {
  /** Only the files of these names. */
  keep?: readonly string[];
  /** The modules, by file, whose sources are not in the archive beside their bytecode. */
  withoutText?: readonly string[];
  /** More files, by name. */
  extra?: Record<string, Uint8Array>;
}

const SOURCE = "/tmp/polygrad-source.zip";

/** The zip `source` as an archive of bytecode that will lie at the path `place` of Python's file system. */
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
