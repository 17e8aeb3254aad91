/** What a reader says of a file whose header has one part changed, compared with what Python's says. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { ProgramError } from "../src/errors";
import { headerText, withHeader } from "./modules";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
interface Verdict {
  readonly path: readonly string[];
  readonly accepted: readonly Json[];
  readonly optional: boolean;
}

const JUNK: readonly Json[] = [null, true, -1, 0, 1, 1.5, 2 ** 60, "x", "", [], [1], {}];

/** The bytes of a file with its header changed; `change` gets the parent of the part at `path`, and its key. */
function changedHeader(
  good: Uint8Array,
  path: readonly string[],
  change: (parent: Record<string, Json>, key: string) => void,
): Uint8Array {
  const header = JSON.parse(headerText(good)) as Json;
  const parent = path.slice(0, -1).reduce((h, key) => (h as Record<string, Json>)[key] ?? null, header);
  change(parent as Record<string, Json>, path.at(-1) ?? "");
  return withHeader(good, JSON.stringify(header));
}

/** Check a reader with a golden file that `tests/header_verdicts.py` wrote. What it refuses is a ProgramError. */
export async function checkVerdicts(name: string, read: (data: Uint8Array) => unknown): Promise<void> {
  const isRead = async (data: Uint8Array): Promise<boolean> => {
    try {
      await read(data);
      return true;
    } catch (error) {
      assert.ok(error instanceof ProgramError, String(error));
      return false;
    }
  };
  // relative to build/tests/wasm_runtime/tests
  const golden = new URL(`../../../../tests/golden/${name}`, import.meta.url);
  const [hex = "", ...lines] = readFileSync(golden, "utf-8").trim().split("\n");
  const good = Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
  assert.ok((await isRead(good)) && lines.length > 10);
  for (const line of lines) {
    const { path, accepted, optional } = JSON.parse(line) as Verdict;
    const readable: Json[] = [];
    for (const junk of JUNK) {
      const changed = changedHeader(good, path, (parent, key) => {
        parent[key] = junk;
      });
      if (await isRead(changed)) readable.push(junk);
    }
    assert.deepEqual(readable, accepted, `${path.join(".")} may be`);
    const without = changedHeader(good, path, (parent, key) => {
      if (Array.isArray(parent)) parent.splice(Number(key), 1);
      // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- a header without a field is the test
      else delete parent[key];
    });
    assert.equal(await isRead(without), optional, `${path.join(".")} may be missing`);
  }
}
