/**
 * `npm run fuzz -- [--seconds 60] [--seed 1] [--reader NAME] [--show]`: damaged files for every reader of files. Each has to give a
 * value or one of its errors, within a second. `--show` prints the files that are read wrongly.
 */

import { parseArgs } from "node:util";

import { changed, Random } from "./changes";
import { READERS, verdict } from "./readers";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
    reader: { type: "string" },
    show: { type: "boolean", default: false },
  },
});
if (values.reader !== undefined && !Object.hasOwn(READERS, values.reader)) {
  throw new RangeError(`--reader: expected one of ${Object.keys(READERS).join(", ")}, got ${values.reader}`);
}

for (const [name, reader] of Object.entries(READERS)) {
  if (values.reader !== undefined && values.reader !== name) continue;
  const random = new Random(Number(values.seed));
  const end = performance.now() + 1000 * Number(values.seconds);
  const problems = new Map<string, Uint8Array>(); // by their first lines
  let count = 0;
  let readCount = 0;
  while (performance.now() < end) {
    const data = changed(reader.files, random);
    const sealed = reader.seal && random.below(4) > 0 ? reader.seal(data) : data;
    const { isRead, wrong } = await verdict(reader, sealed);
    count += 1;
    if (isRead) readCount += 1;
    const title = wrong.split("\n").slice(0, 3).join("\n");
    if (wrong !== "" && !problems.has(title)) problems.set(title, sealed);
  }
  console.log(`${name}: ${count} files, ${readCount} read, ${problems.size} problems`);
  for (const [title, data] of problems) {
    console.log(title);
    if (values.show) console.log(Buffer.from(data).toString("latin1"));
    process.exitCode = 1;
  }
}
