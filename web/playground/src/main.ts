/** The playground: an editor, and demonstrations that train as you watch. */

import { startCharacters } from "./characters";
import { startDigits } from "./digits";
import { html } from "./dom";
import { startEditor } from "./editor";
import { startKernels } from "./kernels";
import { startTabs } from "./tabs";

const PANELS: Readonly<Record<string, () => void>> = {
  editor: startEditor,
  digits: startDigits,
  characters: startCharacters,
  kernels: startKernels,
};

startTabs(html("tabs"), (id) => PANELS[id]?.());
