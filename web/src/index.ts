/**
 * polygrad in a page, as an ES module.
 *
 *     import { create } from "https://cdn.jsdelivr.net/npm/polygrad/+esm"; // or from a copy: "./polygrad/polygrad.mjs"
 *     const { Tensor } = await create();
 *     console.log(await new Tensor([1, 2]).sum().item());
 */

import { api } from "./api";
import { sharedPipeline } from "../../wasm_runtime/src/api/index";
import { creator } from "./create";

export * from "../../wasm_runtime/src/index";
export * from "../../wasm_runtime/src/api/public";
export type { DirectPolygrad, DType, Polygrad, TensorData } from "../../wasm_runtime/src/api/public";
export type { Polygrad as PolygradPython, Python } from "../../loader/src/polygrad";
export { cache } from "./file_cache";
export type { CreateOptions } from "./create";
export type { LoadOptions } from "./load";
export { progressBar } from "./progress_bar";
export type { RemotePolygrad } from "./remote";

export const create = creator(import.meta.url);
export const pipeline = sharedPipeline((options) => create(options));
export const { load, loadWorker } = api(import.meta.url);
