import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { FetchError } from "../src/errors";
import { fetchFile } from "../src/source";

/** Have `fetch` answer from the address `url`; whether the body was cancelled. */
function answerFrom(t: TestContext, url: string): () => boolean {
  const { fetch } = globalThis;
  t.after(() => (globalThis.fetch = fetch));
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(Uint8Array.of(1, 2));
    },
    cancel: () => {
      isCancelled = true;
    },
  });
  globalThis.fetch = () => Promise.resolve(Object.defineProperty(new Response(body), "url", { value: url }));
  return () => isCancelled;
}

test("an address of https: that leads to http: is refused, and its body is not read", async (t) => {
  for (const address of ["https://here.test/file", new URL("HTTPS://here.test/file")]) {
    const isCancelled = answerFrom(t, "http://elsewhere.test/file");
    await assert.rejects(fetchFile(address, "load"), (error: unknown) => {
      assert(error instanceof FetchError);
      const expected =
        /^load: the server of https:\/\/here.test\/file redirects to http:\/\/else.*, which is not https/i;
      assert.match(error.message, expected);
      return error.url === String(address);
    });
    assert(isCancelled());
  }
});

test("other ways from address to address are taken", async (t) => {
  for (const [from, to] of [
    ["https://here.test/file", "https://elsewhere.test/file"],
    ["http://localhost/file", "http://localhost/other"],
    ["http://here.test/file", "https://here.test/file"],
    ["https://here.test/file", ""], // of a service worker
  ] as const) {
    answerFrom(t, to);
    assert.equal((await fetchFile(from, "load")).ok, true);
  }
});
