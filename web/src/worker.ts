/** The module worker: a Python with polygrad off the page's thread, for `create({ worker: true })` and `loadWorker`. */

import { startBridge } from "../../loader/src/bridge";
import { serveSession } from "../../loader/src/hosting";
import { loadOptions, type SentOptions } from "./connect";
import { load } from "./load";

const receive = serveSession(
  (message, transfer) => {
    postMessage(message, { transfer });
  },
  async (sent, listeners) =>
    startBridge(await load(loadOptions({ ...(sent as SentOptions), ...listeners }), import.meta.url)),
);

addEventListener("message", (event: MessageEvent<unknown>) => {
  receive(event.data);
});
