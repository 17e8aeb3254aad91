/**
 * The playground: an editor, and demonstrations that train as you watch.
 *
 * A panel is loaded when it is first opened, and started in a task of its own, so that the page stays responsive.
 */

import { html, nextTask } from "./dom";
import { messageOf } from "./failures";
import { showFailed } from "./status";
import { startTabs } from "./tabs";

type Start = () => void;

const PANELS: Readonly<Record<string, () => Promise<Start>>> = {
  editor: async () => (await import("./editor")).startEditor,
  digits: async () => (await import("./digits")).startDigits,
  boundaries: async () => (await import("./boundaries")).startBoundaries,
  characters: async () => (await import("./characters")).startCharacters,
  chat: async () => (await import("./chat")).startChat,
  "fine-tune": async () => (await import("./fine_tune")).startFineTune,
  onnx: async () => (await import("./onnx")).startOnnx,
  kernels: async () => (await import("./kernels")).startKernels,
};

async function open(id: string): Promise<void> {
  const panel = html(id);
  panel.inert = true; // its buttons do not work yet
  try {
    const start = await PANELS[id]?.();
    await nextTask();
    start?.();
    panel.inert = false;
  } catch (error) {
    showFailed(messageOf(error));
  }
}

startTabs(html("tabs"), (id) => void open(id));
