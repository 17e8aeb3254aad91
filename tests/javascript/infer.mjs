/**
 * What `wasm_runtime/src/api/shapes/infer.ts` says of calls: `node infer.mjs < CALLS` prints JSON, the names of all rules and a
 * result for each call. A call is [name, arguments, options]; see `decode` for its arguments.
 */

import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const api = fileURLToPath(new URL("../../wasm_runtime/src/api/", import.meta.url));
const { outputFiles } = await build({
  stdin: {
    contents: ["shapes/infer", "known", "handle", "slice"]
      .map((name) => `export * from "./${name}";`)
      .join("\n"),
    resolveDir: api,
  },
  bundle: true,
  format: "esm",
  write: false,
});
const { infer, inferMany, RULES, RULES_OF_MANY, known, constructed, Handle, Slice, ELLIPSIS } = await import(
  `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`
);
const owner = { adopt() {} };

/** JSON as an argument: {"tensor": what is known}, {"layer": its constructor's arguments}, {"slice": bounds}, {"ellipsis": 0}. */
function decode(x) {
  if (Array.isArray(x)) return x.map(decode);
  if (typeof x !== "object" || x === null) return x;
  if ("tensor" in x) return Object.assign(new Handle(owner, 1), { [known]: x.tensor });
  if ("layer" in x) return Object.assign(new Handle(owner, 1), { [constructed]: x.layer });
  if ("slice" in x) return new Slice(...x.slice);
  if ("ellipsis" in x) return ELLIPSIS;
  return Object.fromEntries(Object.entries(x).map(([name, value]) => [name, decode(value)]));
}

const results = JSON.parse(await text(process.stdin)).map(([name, args, options]) => {
  const given = [decode(args), decode(options)];
  return name in RULES_OF_MANY ? inferMany(name, given) : [infer(name, given, "WASM") ?? null];
});
console.log(JSON.stringify({ names: [...Object.keys(RULES), ...Object.keys(RULES_OF_MANY)], results }));
