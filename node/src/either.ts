/**
 * The types of `polygrad` where it is not known whether a page or Node will run it: TypeScript's resolution `bundler`
 * knows no host. `polygrad/web` and `polygrad/node` have the types of one host alone. There is no such module at run time.
 *
 * @module polygrad
 */

import type {
  DirectPolygrad,
  FileCache,
  OnProgress,
  Polygrad,
  SharedPipeline,
} from "../../wasm_runtime/src/api/public";
import type { CreateOptions as WebCreateOptions } from "../../web/src/create";
import type { LoadOptions as WebLoadOptions } from "../../web/src/load";
import type { RemotePolygrad } from "../../web/src/remote";
import type { Polygrad as PolygradPython } from "../../loader/src/polygrad";
import type { CreateOptions as NodeCreateOptions } from "./create";
import type { LoadOptions as NodeLoadOptions } from "./load";
import type { ProgressStream } from "./progress_bar";

export * from "../../wasm_runtime/src/index";
export * from "../../wasm_runtime/src/api/public";
export type { DirectPolygrad, DType, Polygrad, TensorData } from "../../wasm_runtime/src/api/public";
export type { Polygrad as PolygradPython, Python } from "../../loader/src/polygrad";
export type { RemotePolygrad } from "../../web/src/remote";
export { mountFolder } from "./mount";
export type { ProgressStream } from "./progress_bar";

/** The options of both hosts. Each ignores those of the other. */
export interface CreateOptions extends WebCreateOptions, NodeCreateOptions {}

/** The options of `load` and `loadWorker` in a page, and of `loadPolygrad` in Node. */
export interface LoadOptions extends WebLoadOptions, NodeLoadOptions {}

/**
 * Start polygrad, in a Python inside of this page or process.
 *
 *     const { Tensor, nn } = await create();
 *     console.log(await new Tensor([[1, 2], [3, 4]]).sum().item());
 */
export declare const create: {
  (options?: CreateOptions & { worker?: false }): Promise<DirectPolygrad>;
  (options: CreateOptions): Promise<Polygrad>;
};

/** A model for a task, in a worker of its own: see `Polygrad.pipeline`. All models share that worker. */
export declare const pipeline: SharedPipeline;

/** The files at addresses that were kept: models, weights. */
export declare const cache: FileCache;

/** Shows progress in an element of a page, or in the terminal, where the default is standard error. */
export declare const progressBar: (target?: Element | ProgressStream) => OnProgress;

/** In a page: start Python with polygrad on this thread. */
export declare const load: (options?: LoadOptions) => Promise<PolygradPython>;

/** In a page: start Python with polygrad in a worker. */
export declare const loadWorker: (options?: LoadOptions) => Promise<RemotePolygrad>;

/** In Node: start Python with polygrad installed. */
export declare const loadPolygrad: (options?: LoadOptions) => Promise<PolygradPython>;
