/**
 * polygrad in a page, as an ES module.
 *
 *     import { load } from "./polygrad.mjs";
 *     const polygrad = await load();
 *     polygrad.runPython("from polygrad import Tensor; Tensor([1, 2]).sum().item()");
 */

import { api } from "./api";

export * from "../../wasm_runtime/src/index";
export type { Polygrad, Progress, Python } from "../../loader/src/polygrad";
export type { LoadOptions } from "./load";
export type { RemotePolygrad } from "./remote";

export const { load, loadWorker } = api(import.meta.url);
