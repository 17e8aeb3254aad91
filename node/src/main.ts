/**
 * polygrad in Node.
 *
 *     import { create } from "polygrad";
 *     const { Tensor } = await create();
 *     console.log(await new Tensor([1, 2]).sum().item());
 */

export { create, pipeline, type CreateOptions } from "./create";
export { cache } from "./file_cache";
export * from "./index";
export { progressBar, type ProgressStream } from "./progress_bar";
export * from "../../wasm_runtime/src/api/public";
export type { DirectPolygrad, DType, Polygrad, TensorData } from "../../wasm_runtime/src/api/public";
export type { Polygrad as PolygradPython } from "../../loader/src/polygrad";
