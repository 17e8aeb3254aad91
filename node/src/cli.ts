/** `polygrad-node SCRIPT [ARGS]`: run a Python file in Node as `python SCRIPT [ARGS]` would run it. */

import { writeSync } from "node:fs";
import { basename, dirname, relative, resolve } from "node:path";

import { fileSystem } from "../../loader/src/pyodide_types";
import { loadPolygrad, mountFolder } from "./index";

const USAGE = `usage: polygrad-node [--wheel FILE] SCRIPT [ARGS...]

Runs a Python file with polygrad, in Node. The working directory is there for it; so is the environment.
`;

/** Variables that describe this process or this machine and would mislead the other Python. */
const HOST_ONLY = /^(HOME|PATH|PWD|OLDPWD|SHELL|TMPDIR|(PYTHON|LD_|DYLD_|VIRTUAL_ENV|NODE_|npm_).*)$/;

/** Write all of it, also to a pipe whose reader is slow. */
function write(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(fd, bytes, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
  }
}

function environment(): Record<string, string> {
  const entries = Object.entries(process.env).filter(([name]) => !HOST_ONLY.test(name));
  return Object.fromEntries(entries) as Record<string, string>;
}

/** Run with the arguments `argv`; the exit status. */
export async function main(argv: readonly string[]): Promise<number> {
  const args = [...argv];
  const wheel = args[0] === "--wheel" ? args.splice(0, 2)[1] : undefined;
  const script = args.shift();
  if (script === undefined || script.startsWith("-")) {
    write(script === "--help" || script === "-h" ? 1 : 2, USAGE);
    return script === "--help" || script === "-h" ? 0 : 2;
  }
  const polygrad = await loadPolygrad({
    ...(wheel === undefined ? {} : { wheel }),
    env: environment(),
    stdout: (text) => {
      write(1, text);
    },
    stderr: (text) => {
      write(2, text);
    },
    isatty: process.stderr.isTTY,
  });
  const cwd = process.cwd();
  const here = mountFolder(polygrad, cwd);
  fileSystem(polygrad.pyodide).chdir(here);
  const path = resolve(script);
  const way = relative(cwd, path);
  const outside = way.startsWith("..") || way === path;
  const mounted = outside ? mountFolder(polygrad, dirname(path)) : here;
  const status = await polygrad.runScript(
    `${mounted}/${outside ? basename(path) : way.replaceAll("\\", "/")}`,
    args,
  );
  await polygrad.kept;
  return status;
}
