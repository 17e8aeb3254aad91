/** Runs a Python file as `python FILE ARGS` would: `__main__`, `sys.argv`, `sys.path[0]`, an exit status. */

import type { PyodideAPI } from "pyodide";

import { callSuspending, type PyFunction, type PyProxy } from "./pyodide_types";

const RUN = `
def run_script(path, args):
    import os, runpy, sys, traceback
    sys.argv[:] = [path, *args]
    sys.path[:] = [os.path.dirname(path), *(p for p in sys.path if p)]
    try:
        runpy.run_path(path, run_name="__main__")
        status = 0
    except SystemExit as stop:
        if stop.code is not None and not isinstance(stop.code, int):
            print(stop.code, file=sys.stderr)
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException as error:
        own = error.__traceback__
        while own is not None and own.tb_frame.f_code.co_filename != path:
            own = own.tb_next
        traceback.print_exception(error.with_traceback(own))
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status
run_script
`;

/** Run the file at `path`, an absolute path in Pyodide's file system; resolves to the exit status. */
export async function runScript(pyodide: PyodideAPI, path: string, args: readonly string[]): Promise<number> {
  const globals = pyodide.toPy({}) as PyProxy;
  const run = pyodide.runPython(RUN, { globals }) as PyFunction;
  const list = pyodide.toPy([...args]) as PyProxy;
  try {
    return (await callSuspending(run, path, list)) as number;
  } finally {
    for (const proxy of [list, run, globals]) proxy.destroy();
  }
}
