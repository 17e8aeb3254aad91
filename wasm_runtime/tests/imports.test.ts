/** Imports of the TypeScript sources: no circles, and packages import only those below them. `import type` is not one. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";

import { build } from "esbuild";

/** Packages and their level: a package imports those of lower levels. */
const LEVELS: Readonly<Record<string, number>> = {
  "wasm_runtime/src/": 0,
  "loader/src/": 1,
  "node/src/": 2,
  "web/src/": 2,
};
const PACKAGES = Object.keys(LEVELS);

const packageOf = (file: string): string => PACKAGES.find((name) => file.startsWith(name)) ?? "";

/** The files that each source imports when it runs. */
async function runtimeImports(): Promise<ReadonlyMap<string, readonly string[]>> {
  const entryPoints = PACKAGES.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"))
      .map((name) => folder + name),
  );
  const { metafile } = await build({
    entryPoints,
    bundle: true,
    format: "esm",
    platform: "node",
    packages: "external",
    loader: { ".py": "text" },
    define: { POLYGRAD_ASSETS: "{}" },
    outdir: "build/imports",
    write: false,
    metafile: true,
  });
  return new Map(
    Object.entries(metafile.inputs).map(([file, { imports }]) => [
      file,
      imports.filter(({ external, path }) => !external && path.endsWith(".ts")).map(({ path }) => path),
    ]),
  );
}

/** A circle of imports, or undefined when there is none. */
function findCircle(imports: ReadonlyMap<string, readonly string[]>): readonly string[] | undefined {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): readonly string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const next of imports.get(file) ?? []) {
      const circle = visit(next, [...path, file]);
      if (circle !== undefined) return circle;
    }
    done.add(file);
    return undefined;
  };
  for (const file of imports.keys()) {
    const circle = visit(file, []);
    if (circle !== undefined) return circle;
  }
  return undefined;
}

test("no file imports itself through others, and packages import those below them", async () => {
  const imports = await runtimeImports();
  assert.ok(imports.get("loader/src/hosting.ts")?.includes("wasm_runtime/src/api/client.ts"));
  assert.equal(findCircle(imports), undefined);
  for (const [file, imported] of imports) {
    for (const target of imported) {
      const [own, other] = [packageOf(file), packageOf(target)];
      const isBelow = own === other || (LEVELS[own] ?? -1) > (LEVELS[other] ?? Infinity);
      assert.ok(isBelow, `${file} imports ${target}`);
    }
  }
});

test("a circle is found", () => {
  const circle = new Map([
    ["a", ["b"]],
    ["b", ["c", "d"]],
    ["c", []],
    ["d", ["b"]],
  ]);
  assert.deepEqual(findCircle(circle), ["b", "d", "b"]);
  circle.set("d", ["c"]);
  assert.equal(findCircle(circle), undefined);
});
