/** The module worker that `create({ worker: true })` starts. */

import { serveSession, startBridge } from "../../wasm_runtime/src/api/index";
import { loadOptions, type SentOptions } from "./create";
import { load } from "./load";
import { watchProgress } from "./progress";

const receive = serveSession(
  (message, transfer) => {
    postMessage(message, { transfer });
  },
  async (sent, { stdout, stderr, onProgress }) => {
    const options = loadOptions({ ...(sent as SentOptions), stdout, stderr });
    const { pyodide } = await watchProgress(onProgress, () => load(options, import.meta.url));
    return startBridge(pyodide);
  },
);

addEventListener("message", (event: MessageEvent<unknown>) => {
  receive(event.data);
});
