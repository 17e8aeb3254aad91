/** The module worker that `create({ worker: true })` starts. */

import { startBridge } from "../../loader/src/bridge";
import { serveSession } from "../../loader/src/hosting";
import { loadOptions, type SentOptions } from "./create";
import { load } from "./load";

const receive = serveSession(
  (message, transfer) => {
    postMessage(message, { transfer });
  },
  async (sent, listeners) => {
    const options = loadOptions({ ...(sent as SentOptions), ...listeners });
    const { pyodide, kept } = await load(options, import.meta.url);
    return { ...startBridge(pyodide), kept };
  },
);

addEventListener("message", (event: MessageEvent<unknown>) => {
  receive(event.data);
});
