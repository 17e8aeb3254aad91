/**
 * How a browser's console shows tensors and layers: by the formatters that Chromium's and Firefox's developer tools ask
 * where custom formatters are switched on in their settings.
 */

import { Handle, inspect } from "../../wasm_runtime/src/api/index";

/** JsonML: a tag, its attributes, its content. */
type Markup = readonly [tag: string, attributes: Readonly<Record<string, string>>, content: string];

interface Formatter {
  header(value: unknown): Markup | null;
  hasBody(value: unknown): boolean;
  body(value: unknown): Markup | null;
}

/** What is shown of a handle, line by line. */
function linesOf(value: unknown): readonly string[] {
  return value instanceof Handle ? value[inspect]().split("\n") : [];
}

const FORMATTER: Formatter = {
  header(value) {
    const [first] = linesOf(value);
    return first === undefined ? null : ["div", {}, first];
  },
  hasBody: (value) => linesOf(value).length > 1,
  body: (value) => ["pre", { style: "margin: 0 0 0 1em" }, linesOf(value).slice(1).join("\n")],
};

/** Register the formatter, once. */
export function installFormatter(): void {
  const tools = globalThis as { devtoolsFormatters?: Formatter[] };
  tools.devtoolsFormatters ??= [];
  if (!tools.devtoolsFormatters.includes(FORMATTER)) tools.devtoolsFormatters.push(FORMATTER);
}
