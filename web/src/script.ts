/**
 * polygrad in a page, for a script tag: it defines the global `polygrad`.
 *
 *     <script src="https://cdn.jsdelivr.net/npm/polygrad"></script> (or a copy: polygrad/polygrad.js)
 *     <script type="module"> const { Tensor } = await polygrad.create(); </script>
 */

import { sharedPipeline } from "../../wasm_runtime/src/api/index";
import { api } from "./api";
import { creator } from "./create";
import { cache } from "./file_cache";
import { runPythonTags } from "./python_tags";

export * from "../../wasm_runtime/src/index";

export * from "../../wasm_runtime/src/api/public";
export type { DType, TensorData } from "../../wasm_runtime/src/api/public";

export { progressBar } from "./progress_bar";

const tag = document.currentScript;
const base = tag instanceof HTMLScriptElement && tag.src ? tag.src : document.baseURI;

export { cache };
export const create = creator(base);
export const pipeline = sharedPipeline((options) => create(options));
export const { load, loadWorker } = api(base);

const runTags = (): void => {
  void runPythonTags(create);
};
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", runTags);
else runTags();
