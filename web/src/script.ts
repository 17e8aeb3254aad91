/**
 * polygrad in a page, by a script tag, which defines the global `polygrad`.
 *
 *     <script src="polygrad.js"></script>
 *     <script> const python = await polygrad.load(); </script>
 */

import { api } from "./api";

export * from "../../wasm_runtime/src/index";

const tag = document.currentScript;
export const { load, loadWorker } = api(
  tag instanceof HTMLScriptElement && tag.src ? tag.src : document.baseURI,
);
