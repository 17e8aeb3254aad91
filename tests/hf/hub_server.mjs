/**
 * A bundle of `loader/src/hub.ts` in plain Node, for tests: reads a request of JSON a line, writes its answer a line.
 * `node hub_server.mjs BUNDLE`.
 */

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { HubTokenizer, renderTemplate } = await import(pathToFileURL(process.argv[2]).href);
let tokenizer;

const calls = {
  open: (json) => void (tokenizer = new HubTokenizer(json)),
  normalize: (text) => tokenizer.normalize(text),
  encode: (text, first) => [...tokenizer.encode(text, first)],
  render: (template, variables) => renderTemplate(template, variables),
};

for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...args] = JSON.parse(line);
  let answer;
  try {
    answer = { value: calls[name](...args) ?? null };
  } catch (error) {
    answer = { error: String(error.message) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
