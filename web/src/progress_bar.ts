/** A bar of progress in an element of the page. */

import { describeProgress, type OnProgress } from "../../wasm_runtime/src/progress";

/**
 * Shows progress in `element`, as a `<progress>` and a text: for the option `onProgress` of `create`, `fit`, `load` and others.
 *
 *     await fit(model, data, { loss: "mse", epochs: 5, onProgress: progressBar(document.querySelector("#progress")) });
 *
 * Throws TypeError for what is no element.
 */
export function progressBar(element: Element): OnProgress {
  if (!(element instanceof Element)) {
    throw new TypeError(`progressBar: expected an element of the page, got ${String(element)}`);
  }
  const bar = document.createElement("progress");
  const text = document.createElement("label");
  text.append(bar, document.createTextNode(""));
  element.replaceChildren(text);
  return (progress) => {
    bar.value = progress.fraction;
    text.lastChild?.replaceWith(` ${describeProgress(progress)}`);
  };
}
