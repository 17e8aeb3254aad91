/** Folders of this machine inside Pyodide's file system. */

import { relative, resolve, sep } from "node:path";

import type { Polygrad } from "../../loader/src/polygrad";

/** Folders of Pyodide. No folder of the host may be mounted on them, or above them. */
const TAKEN = ["/dev", "/home/pyodide", "/lib", "/proc", "/tmp"];

function inside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || (!way.startsWith("..") && !way.startsWith(sep));
}

/**
 * Mount `folder`; its path in Python, which is the same unless Pyodide uses that path.
 */
export function mountFolder({ pyodide }: Polygrad, folder: string): string {
  const path = resolve(folder);
  const posix = path.replaceAll("\\", "/").replace(/^([A-Za-z]):/, "/$1");
  const target = TAKEN.some((taken) => inside(taken, path)) ? `/mnt${posix}` : posix;
  pyodide.mountNodeFS(target, path);
  return target;
}
