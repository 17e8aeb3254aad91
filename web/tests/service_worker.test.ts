/** What a page asks of its service worker arrives there by the worker's address. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { addressOf, settingsOf } from "../src/service_worker/settings";

const SCRIPT = "https://example.org/site/polygrad-service-worker.js";

const addressFor = (attributes: Record<string, string>, script = SCRIPT): URL =>
  new URL(addressOf(script, settingsOf(attributes)));

const arrived = (address: URL): unknown => settingsOf(Object.fromEntries(address.searchParams));

test("settings of a tag are those of the worker", () => {
  const cases = [
    { attributes: { isolate: "" }, isolate: "require-corp", offline: false },
    { attributes: { isolate: "credentialless", offline: "" }, isolate: "credentialless", offline: true },
    { attributes: { offline: "" }, isolate: undefined, offline: true },
  ];
  for (const { attributes, ...expected } of cases) {
    assert.deepEqual(arrived(addressFor(attributes)), expected);
  }
});

test("a query in the script's address stays", () => {
  const address = addressFor({ isolate: "", offline: "" }, `${SCRIPT}?v=2`);
  assert.equal(address.searchParams.get("v"), "2");
  assert.deepEqual(arrived(address), { isolate: "require-corp", offline: true });
});

test("a tag that asks for nothing, or for another policy, is an error", () => {
  assert.throws(() => settingsOf({}), /data-isolate or data-offline, got neither/);
  assert.throws(
    () => settingsOf({ isolate: "unsafe-none" }),
    /require-corp or credentialless, got unsafe-none/,
  );
});
