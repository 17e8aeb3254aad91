/** The module worker: a Python with polygrad off the page's thread, for `create({ worker: true })` and `loadWorker`. */

import { startBridge } from "../../loader/src/bridge";
import { serveSession } from "../../loader/src/hosting";
import { loadOptions, type SentOptions } from "./connect";
import { load } from "./load";
import { folderOf } from "./places";

const receive = serveSession(
  (message, transfer) => {
    postMessage(message, { transfer });
  },
  async (sent, listeners) =>
    startBridge(
      await load(loadOptions({ ...(sent as SentOptions), ...listeners }), folderOf(import.meta.url)),
    ),
);

addEventListener("message", (event: MessageEvent<unknown>) => {
  receive(event.data);
});
