/**
 * The functions that Python calls, for a Pyodide that polygrad's loader did not start: `polygrad/runtime/page_host.py`
 * evaluates the bundle of this file, which is in the wheel. It has no threads and no tokenizers.
 */

import { WasmHost } from "../../wasm_runtime/src/host";
import { WebGPUDevice } from "../../wasm_runtime/src/webgpu/device";

export const openHost = (): WasmHost => new WasmHost();

export const openGpu = (): Promise<WebGPUDevice | undefined> => {
  // Node 20 has no `navigator`.
  const { gpu, userAgent } = (globalThis as { navigator?: Navigator }).navigator ?? {
    gpu: undefined,
    userAgent: "",
  };
  return WebGPUDevice.open(gpu, { nudge: userAgent.includes("Firefox") });
};
