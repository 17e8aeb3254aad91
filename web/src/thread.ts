/** The module worker that runs kernels. */

import { Thread, type ThreadMessage } from "../../wasm_runtime/src/thread";

const thread = new Thread();

addEventListener("message", (event: MessageEvent<ThreadMessage>) => {
  thread.receive(event.data);
});
