/**
 * Writes the JavaScript API from the manifest: `python -m polygrad.manifest | node scripts/generate_api.mjs [--check]`.
 *
 * With `--check` nothing is written; the status is 1 when what is there is not what would be.
 */

import { readFile, writeFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

import { format, resolveConfig } from "prettier";

import { translateDocs } from "./api/docs.mjs";
import { addExamples } from "./api/examples.mjs";
import { nnFile } from "./api/nn.mjs";
import { tensorFile } from "./api/tensor.mjs";
import { comment, Names } from "./api/types.mjs";

const FOLDER = fileURLToPath(new URL("../wasm_runtime/src/api/generated/", import.meta.url));
const HEADER =
  "// Generated from the API manifest by scripts/generate_api.mjs (`make api`): do not edit.\n\n";

/** Errors that the runtime has without Python. */
const OF_THE_RUNTIME = [
  "CompileError",
  "FetchError",
  "InternalError",
  "OutOfMemoryError",
  "PolygradError",
  "ProgramError",
];

function errorsFile({ errors }) {
  const own = errors.filter(({ name }) => !OF_THE_RUNTIME.includes(name));
  return `
import { PolygradError } from "../../errors";
export { ${OF_THE_RUNTIME.join(", ")} } from "../../errors";
${own.map(({ name, doc }) => `\n${comment(doc)}export class ${name} extends PolygradError {\n  override name = "${name}";\n}`).join("\n")}
`;
}

function namesFile(names) {
  return `
/** Arguments whose Python name is another. */
export const PYTHON_NAMES: Readonly<Record<string, string>> = {
${names
  .entries()
  .map(([own, python]) => `  ${own}: "${python}",`)
  .join("\n")}
};
`;
}

/** Parameters that are there for Python's operators alone. */
const OF_OPERATORS = "reverse";

/** The manifest without them. */
function withoutOperators(manifest) {
  for (const { methods } of manifest.classes) {
    for (const method of methods) {
      method.parameters = method.parameters.filter(({ name }) => name !== OF_OPERATORS);
      method.doc = method.doc.replace(`; x @ self when \`${OF_OPERATORS}\``, "");
    }
  }
  return manifest;
}

const manifest = withoutOperators(JSON.parse(await text(process.stdin)));
translateDocs(manifest);
addExamples(manifest);
const names = new Names();
const files = {
  "errors.ts": errorsFile(manifest),
  "tensor.ts": tensorFile(manifest, names),
  "nn.ts": nnFile(manifest, names),
};
files["names.ts"] = namesFile(names);

const stale = [];
for (const [name, source] of Object.entries(files)) {
  const path = FOLDER + name;
  const options = { ...(await resolveConfig(path)), parser: "typescript" };
  const generated = await format(HEADER + source.trimStart(), options);
  if (generated === (await readFile(path, "utf8").catch(() => ""))) continue;
  stale.push(name);
  if (!process.argv.includes("--check")) await writeFile(path, generated);
}
if (process.argv.includes("--check") && stale.length > 0) {
  console.error(`${stale.join(", ")}: not what the manifest says: run \`make api\``);
  process.exitCode = 1;
}
