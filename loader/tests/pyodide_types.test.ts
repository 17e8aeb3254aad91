import assert from "node:assert/strict";
import { test } from "node:test";

import type { PyodideAPI } from "pyodide";

import { withFunctions } from "../src/pyodide_types";

test("functions of Python source are used once, and freed also where that fails", () => {
  const freed: string[] = [];
  const proxy = (name: string): object => ({ get: proxy, name, destroy: () => freed.push(name) });
  const ran: unknown[] = [];
  const pyodide = {
    toPy: () => proxy("globals"),
    runPython: (code: string) => ran.push(code),
  } as unknown as PyodideAPI;
  const namesOf = (...functions: object[]): unknown[] => functions.map((x) => (x as { name: unknown }).name);
  assert.deepEqual(withFunctions(pyodide, "code", ["f", "g"], namesOf), ["f", "g"]);
  assert.deepEqual([ran, freed.splice(0)], [["code"], ["f", "g", "globals"]]);
  const failing = (): never => {
    throw new RangeError("mine");
  };
  assert.throws(() => withFunctions(pyodide, "", ["f"], failing), /mine/);
  assert.deepEqual(freed, ["f", "globals"]);
});
