/** Downloads: where they come from, and their limits, with a server on this machine. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";

import { checkAddress, checkRedirection, isPrivate, network } from "../src/addresses";
import { FileCache } from "../src/cache/file_cache";
import { DownloadBudget } from "../src/download_limits";
import { StoredFiles } from "../src/cache/stored_files";
import { FetchError } from "../src/errors";
import { collect, type ReadOptions } from "../src/source";

const TWO = Uint8Array.of(1, 2);
const LARGE = new Uint8Array(300_000);

/** What the server answers to a path. */
const ANSWERS: Record<string, (response: ServerResponse) => void> = {
  "/two": (response) => response.end(TWO),
  "/large": (response) => response.writeHead(200, { "content-length": LARGE.length }).end(LARGE),
  "/unannounced": (response) => {
    response.write(LARGE);
    response.end();
  },
  "/cut": (response) => {
    response.writeHead(200, { "content-length": 102 });
    response.write(TWO, () => response.destroy());
  },
  "/silent": () => undefined,
  "/drops": (response) => {
    const timer = setInterval(() => response.write("x"), 20);
    response.on("close", () => {
      clearInterval(timer);
    });
  },
  "/ftp": (response) => response.writeHead(302, { location: "ftp://127.0.0.1/two" }).end(),
  ...Object.fromEntries(
    [301, 302, 303, 307, 308].map((status) => [
      `/${status}`,
      (response: ServerResponse) => response.writeHead(status, { location: "/two" }).end(),
    ]),
  ),
  "/round": (response) => response.writeHead(302, { location: "/round" }).end(),
};

async function serve(t: TestContext): Promise<string> {
  const server = createServer(({ url = "" }, response) => {
    ANSWERS[url]?.(response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const files = (): FileCache =>
  new FileCache(() => Promise.resolve(new StoredFiles(() => Promise.resolve(undefined))));

async function read(url: string, options: ReadOptions): Promise<Uint8Array> {
  return collect(await files().open(url, "load", options), options);
}

test("a file within the limits is read, also through a redirection", async (t) => {
  const url = await serve(t);
  const sha256 = createHash("sha256").update(TWO).digest("hex");
  assert.deepEqual(await read(`${url}/two`, { maxBytes: 2, timeout: 60, sha256 }), TWO);
  for (const status of [301, 302, 303, 307, 308]) assert.deepEqual(await read(`${url}/${status}`, {}), TWO);
  assert.equal((await read(`${url}/unannounced`, {})).length, LARGE.length);
});

for (const [name, options, message] of [
  ["large", { maxBytes: 1000 }, /large: expected at most maxBytes, 1000 bytes, got 300000/],
  ["unannounced", { maxBytes: 1000 }, /unannounced: more than maxBytes, 1000 bytes, arrived/],
  ["drops", { timeout: 0.2 }, /drops: \d+ bytes arrived in 0.2 s, and the file is not whole/],
  ["silent", { timeout: 0.2 }, /silent: 0 bytes arrived in 0.2 s, and the file is not whole/],
  ["cut", {}, /cut/],
  ["two", { sha256: "0".repeat(64) }, /expected a file of SHA-256 0000/],
  ["ftp", {}, /redirects to ftp:\/\/127.0.0.1\/two, which is not https/],
  ["round", {}, /more than 20 redirections/],
] as const) {
  test(`what is not whole or beyond a limit is a FetchError: ${name}`, async (t) => {
    const url = await serve(t);
    const started = performance.now();
    await assert.rejects(read(`${url}/${name}`, options), (error: unknown) => {
      assert(error instanceof FetchError, String(error));
      assert.match(error.message, message);
      return error.url === `${url}/${name}`;
    });
    assert(performance.now() - started < 10_000);
  });
}

test("files of one model share limits, and a file that is read twice counts once", async (t) => {
  const url = await serve(t);
  const budget = new DownloadBudget("load", { maxBytes: LARGE.length + 2 });
  const open = async (name: string): Promise<Uint8Array> =>
    collect(await files().open(`${url}/${name}`, "load", { budget }), {});
  assert.equal((await open("large")).length, LARGE.length);
  assert.equal((await open("large")).length, LARGE.length);
  assert.deepEqual(await open("two"), TWO);
  await assert.rejects(open("302"), {
    name: "FetchError",
    message: `load: ${url}/302: expected at most maxBytes, ${LARGE.length + 2} bytes, got ${LARGE.length + 4}`,
  });
  const late = new DownloadBudget("load", { timeout: 0.1 });
  await new Promise((resolve) => setTimeout(resolve, 120));
  await assert.rejects(files().open(`${url}/silent`, "load", { budget: late }), /arrived in 0.1 s/);
});

test("the seconds of a model's files count from the first of them", (t) => {
  let now = 5000;
  t.mock.method(performance, "now", () => now);
  const budget = new DownloadBudget("load", {});
  now += 1500;
  assert.equal(budget.passed, 1.5);
});

test("a signal ends a download, and limits have to be positive", async (t) => {
  const url = await serve(t);
  const reason = new Error("enough");
  const controller = new AbortController();
  setTimeout(() => {
    controller.abort(reason);
  }, 50);
  await assert.rejects(read(`${url}/silent`, { signal: controller.signal }), reason);
  await assert.rejects(read(`${url}/two`, { timeout: 0 }), /timeout: expected a positive number, got 0/);
});

test("redirections do not leave https or enter a private network", async (t) => {
  t.after(() => delete network.addressesOf);
  network.addressesOf = (name) => Promise.resolve(name === "inside.example" ? ["10.0.0.1"] : ["1.1.1.1"]);
  const refused = [
    ["https://a.example/x", "http://b.example/x", /redirects to http:\/\/b.*, which is not https/],
    ["https://a.example/x", "https://192.168.1.1/x", /an address of a private network/],
    ["https://a.example/x", "https://[::1]/x", /an address of a private network/],
    ["https://a.example/x", "https://inside.example/x", /an address of a private network/],
  ] as const;
  for (const [from, to, message] of refused)
    await assert.rejects(checkRedirection(from, to, "load"), message);
  for (const [from, to] of [
    ["http://a.example/x", "https://b.example/x"],
    ["https://a.internal/x", "https://inside.example/x"],
    ["https://a.example/x", "https://b.example/x"],
  ] as const) {
    await checkRedirection(from, to, "load");
  }
});

test("an address with http: needs a digest, unless it is of this machine or network", async () => {
  const address = "http://example.com/weights";
  await assert.rejects(
    checkAddress(address, "load", undefined),
    /expected https.*got http, by which anybody/,
  );
  await checkAddress(address, "load", "0".repeat(64));
  for (const near of ["http://localhost:8000/x", "http://192.168.0.2/x", "https://example.com/x"]) {
    await checkAddress(near, "load", undefined);
  }
});

test("which hosts are private", async () => {
  const hosts = [
    "127.0.0.1",
    "10.1.2.3",
    "169.254.169.254",
    "172.31.0.1",
    "100.64.0.1",
    "0.0.0.0",
    "[::1]",
    "::1",
  ];
  const more = [
    "[fd00::1]",
    "fe80::1%eth0",
    "[::ffff:127.0.0.1]",
    "localhost",
    "a.localhost",
    "printer.local",
  ];
  for (const host of [...hosts, ...more]) assert.equal(await isPrivate(host), true, host);
  const open = [
    "1.1.1.1",
    "172.32.0.1",
    "8.8.8.8",
    "[2606:4700::1111]",
    "[::ffff:1.1.1.1]",
    "local.example.com",
  ];
  for (const host of open) assert.equal(await isPrivate(host), false, host);
});
