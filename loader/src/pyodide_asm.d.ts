/** The part of the package `pyodide` that it does not declare. */
declare module "pyodide/pyodide.asm.mjs" {
  const create: import("./pyodide_types").CreateModule;
  export default create;
}
