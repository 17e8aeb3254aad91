/**
 * polygrad in Node.
 *
 *     import { loadPolygrad } from "polygrad";
 *     const polygrad = await loadPolygrad();
 *     polygrad.runPython("from polygrad import Tensor; Tensor([1, 2]).sum().item()");
 */

export { loadPolygrad, type LoadOptions } from "./load";
export { mountFolder } from "./mount";
export * from "../../wasm_runtime/src/index";
export type { Polygrad, Python } from "../../loader/src/polygrad";
