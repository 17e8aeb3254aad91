/** What a page asks of its service worker arrives there by the worker's address. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { queryOf, settingsOf } from "../src/service_worker/settings";

const arrived = (attributes: Record<string, string>): unknown =>
  settingsOf(Object.fromEntries(new URLSearchParams(queryOf(settingsOf(attributes)))));

test("settings of a tag are those of the worker", () => {
  const cases = [
    { attributes: { isolate: "" }, isolate: "require-corp", offline: false },
    { attributes: { isolate: "credentialless", offline: "" }, isolate: "credentialless", offline: true },
    { attributes: { offline: "" }, isolate: undefined, offline: true },
  ];
  for (const { attributes, ...expected } of cases) assert.deepEqual(arrived(attributes), expected);
});

test("a tag that asks for nothing, or for another policy, is an error", () => {
  assert.throws(() => settingsOf({}), /data-isolate or data-offline, got neither/);
  assert.throws(
    () => settingsOf({ isolate: "unsafe-none" }),
    /require-corp or credentialless, got unsafe-none/,
  );
});
