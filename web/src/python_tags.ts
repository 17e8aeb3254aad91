/**
 * Python in a page: `<script type="text/python" data-polygrad src="train.py"></script>`, or with the source inside.
 *
 * The scripts run one after the other, in one Python, once the page has been parsed. They may use `await`. Their output
 * goes to the console, or into the element whose id is `data-target`. `data-worker` on the first script makes them run
 * in a worker, and `data-device` chooses the device.
 */

import type { Polygrad } from "../../wasm_runtime/src/api/index";
import { fetchFile } from "../../wasm_runtime/src/source";
import type { CreateOptions } from "./create";

const SELECTOR = 'script[type="text/python"][data-polygrad]';

async function sourceOf(tag: HTMLScriptElement): Promise<string> {
  if (!tag.src) return dedent(tag.textContent);
  return (await fetchFile(tag.src, "polygrad")).text();
}

/** Source without the indentation that all its lines share. */
export function dedent(source: string): string {
  const lines = source.split("\n");
  const widths = lines.filter((line) => line.trim() !== "").map((line) => /^ */.exec(line)?.[0].length ?? 0);
  const width = Math.min(...widths, Infinity);
  return lines.map((line) => line.slice(Math.min(width, line.length))).join("\n");
}

/** A function that takes pieces of output and writes whole lines. */
function byLine(write: (line: string) => void): (text: string) => void {
  let incomplete = "";
  return (text) => {
    const lines = (incomplete + text).split("\n");
    incomplete = lines.pop() ?? "";
    for (const line of lines) write(line);
  };
}

/** Run all Python script tags. A traceback goes to the console, and its error as an `error` event to the tag. */
export async function runPythonTags(create: (options: CreateOptions) => Promise<Polygrad>): Promise<void> {
  const tags = Array.from(document.querySelectorAll<HTMLScriptElement>(SELECTOR));
  const [first] = tags;
  if (first === undefined) return;
  let target: HTMLElement | null = null;
  const print = (line: string): void => {
    if (target === null) console.log(line);
    else target.append(`${line}\n`);
  };
  const { device } = first.dataset;
  const pg = await create({
    stdout: byLine(print),
    stderr: byLine((line) => {
      console.error(line);
    }),
    worker: first.dataset.worker !== undefined,
    ...(device !== undefined && { device }),
  });
  for (const tag of tags) {
    target = tag.dataset.target === undefined ? null : document.getElementById(tag.dataset.target);
    try {
      await pg.python(await sourceOf(tag));
      tag.dispatchEvent(new Event("load"));
    } catch (error) {
      const traceback = error instanceof Error && typeof error.cause === "string" ? error.cause : undefined;
      console.error(traceback ?? error);
      tag.dispatchEvent(new ErrorEvent("error", { error, message: String(error) }));
    }
  }
}
