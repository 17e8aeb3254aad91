/** The cache of files: servers that break off, change and lie; stores that are full, damaged and shared. */

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";

import { FileCache, type OpenOptions } from "../src/cache/file_cache";
import { StoredFiles } from "../src/cache/stored_files";
import { Sha256 } from "../src/cache/sha256";
import type { FileStore } from "../src/cache/store";
import { FetchError } from "../src/errors";
import type { Progress } from "../src/progress";
import { collect } from "../src/source";

const BLOCK = 4 << 20;

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** A store in memory, with the faults of real ones. */
class MemoryStore implements FileStore {
  readonly held = new Map<string, Map<string, Uint8Array<ArrayBuffer>>>();
  /** The most bytes that it has room for. */
  quota = Infinity;
  /** The error of every write. */
  refusal: Error | undefined;
  /** Folders that cannot be removed. */
  readonly locked = new Set<string>();

  get bytes(): number {
    return [...this.held.values()]
      .flatMap((names) => [...names.values()])
      .reduce((sum, b) => sum + b.length, 0);
  }

  /** Blocks that are stored, by folder and name. */
  get blocks(): [string, string][] {
    return [...this.held].flatMap(([folder, names]) =>
      [...names.keys()].filter((name) => name.length === 64).map((name): [string, string] => [folder, name]),
    );
  }

  folders = (): Promise<string[]> => Promise.resolve([...this.held.keys()]);
  names = (folder: string): Promise<string[]> => Promise.resolve([...(this.held.get(folder)?.keys() ?? [])]);
  read = (folder: string, name: string): Promise<Uint8Array<ArrayBuffer> | undefined> =>
    Promise.resolve(this.held.get(folder)?.get(name));

  async write(folder: string, name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await Promise.resolve();
    if (this.refusal !== undefined) throw this.refusal;
    const old = this.held.get(folder)?.get(name)?.length ?? 0;
    if (this.bytes - old + bytes.length > this.quota) throw new DOMException("full", "QuotaExceededError");
    const names = this.held.get(folder) ?? new Map<string, Uint8Array<ArrayBuffer>>();
    this.held.set(folder, names.set(name, bytes.slice()));
  }

  remove(folder: string, name?: string): Promise<void> {
    if (this.locked.has(folder)) return Promise.reject(new Error("in use"));
    if (name === undefined) this.held.delete(folder);
    else this.held.get(folder)?.delete(name);
    return Promise.resolve();
  }
}

/** A server of one file, which can be told to behave badly. */
class Server {
  url = "";
  body: Uint8Array = randomBytes(100);
  etag: string | undefined = '"1"';
  headers: Record<string, string> = {};
  /** What it was asked for: "GET", "304", or a range with its condition. */
  readonly requests: string[] = [];
  /** How many bytes of a body are sent before it breaks off, for one request after the other. */
  breaks: number[] = [];
  status: number | undefined;
  /** Changes a part's headers before they are sent. */
  lie: ((headers: Record<string, string>) => void) | undefined;
  takesRanges = true;
  /** The most bytes of a part. */
  partLength = Infinity;
  sendsLength = true;

  answer(request: IncomingMessage, response: ServerResponse): void {
    const { range, "if-range": ifRange, "if-none-match": ifNoneMatch } = request.headers;
    const asked = range === undefined ? (ifNoneMatch ?? "GET") : `${range} ${String(ifRange)}`;
    this.requests.push(asked);
    const headers = { ...this.headers, ...(this.etag !== undefined && { ETag: this.etag }) };
    if (this.status !== undefined) {
      response.writeHead(this.status).end();
      return;
    }
    if (ifNoneMatch !== undefined && ifNoneMatch === this.etag) {
      response.writeHead(304, headers).end();
      return;
    }
    const start = Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0);
    const isPart =
      range !== undefined && this.takesRanges && (ifRange === undefined || ifRange === this.etag);
    const { length } = this.body;
    const body = isPart ? this.body.subarray(start, start + this.partLength) : this.body;
    const lengths: Record<string, string> = this.sendsLength ? { "Content-Length": String(body.length) } : {};
    const part: Record<string, string> = isPart
      ? { "Content-Range": `bytes ${start}-${start + body.length - 1}/${length}` }
      : {};
    const all = { ...headers, ...lengths, ...part };
    if (isPart) this.lie?.(all);
    response.writeHead(isPart ? 206 : 200, all);
    const sent = this.breaks.shift();
    if (sent === undefined) response.end(body);
    else response.write(body.subarray(0, sent), () => setTimeout(() => response.destroy(), 20));
  }
}

interface Setup {
  readonly server: Server;
  readonly store: MemoryStore;
  readonly cache: FileCache;
  /** The file's bytes, how many of them came from the cache, and the requests. */
  readonly read: (options?: OpenOptions, cache?: FileCache) => Promise<[Buffer, number, string[]]>;
}

const cacheOf = (openStore: () => Promise<FileStore | undefined>): FileCache =>
  new FileCache(() => Promise.resolve(new StoredFiles(openStore)));

const onStore = (store: FileStore): FileCache => cacheOf(() => Promise.resolve(store));

async function setUp(t: TestContext, body: Uint8Array = randomBytes(100)): Promise<Setup> {
  const server = new Server();
  server.body = body;
  const listening = createServer((request, response) => {
    server.answer(request, response);
  });
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    listening.closeAllConnections();
    listening.close();
  });
  server.url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}/file`;
  const store = new MemoryStore();
  const own = onStore(store);
  return {
    server,
    store,
    cache: own,
    async read(options = {}, cache = own) {
      server.requests.length = 0;
      let last: Progress | undefined;
      const file = await cache.open(server.url, "load", options);
      const bytes = await collect(file, { onProgress: (progress) => (last = progress) });
      assert.equal(last?.fraction, 1);
      return [Buffer.from(bytes), last.cached ?? 0, [...server.requests]];
    },
  };
}

/** The file broke off after `sent` bytes, and could not be continued: the error. */
async function breakOff({ server, read }: Setup, sent: number): Promise<unknown> {
  server.breaks = [sent, 0];
  const error = await read().catch((reason: unknown) => reason);
  server.breaks = [];
  return error;
}

test("SHA-256 of pieces is that of Node", () => {
  for (let length = 0; length < 200; length++) {
    const [bytes, hash] = [randomBytes(length), new Sha256()];
    const cut = Math.floor((length * 7) / 11);
    for (const piece of [bytes.subarray(0, cut), bytes.subarray(cut)]) hash.update(piece);
    assert.equal(hash.digest(), sha256(bytes));
  }
});

test("a file is stored in blocks, and read from them when the server says that it is the same", async (t) => {
  const { server, store, cache, read } = await setUp(t, randomBytes(2 * BLOCK + 5));
  assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
  assert.equal(store.blocks.length, 3);
  assert.deepEqual(await read(), [server.body, server.body.length, ['"1"']]);
  const [file, ...others] = await cache.list();
  assert.deepEqual(
    [others.length, file?.url, file?.bytes, file?.whole],
    [0, server.url, server.body.length, true],
  );
  assert.ok(Math.abs(Date.now() - (file?.used.getTime() ?? 0)) < 60_000);
  assert.deepEqual(await read({}, onStore(store)), [server.body, server.body.length, ['"1"']]);
  assert.deepEqual(await read({ cache: false }), [server.body, 0, ["GET"]]);
});

test("a file may be empty", async (t) => {
  const { server, read } = await setUp(t, new Uint8Array());
  for (const asked of ["GET", '"1"']) assert.deepEqual(await read(), [Buffer.from(server.body), 0, [asked]]);
});

test("a changed file takes the place of the stored one", async (t) => {
  const { server, store, read } = await setUp(t);
  await read();
  [server.body, server.etag] = [randomBytes(50), '"2"'];
  assert.deepEqual(await read(), [server.body, 0, ['"1"']]);
  assert.equal(store.blocks.length, 1);
  assert.deepEqual(await read(), [server.body, 50, ['"2"']]);
});

test("servers say for how long they need not be asked, and what must not be stored", async (t) => {
  const { server, store, cache, read } = await setUp(t);
  for (const control of ["max-age=60", "public, immutable"]) {
    server.headers = { "Cache-Control": control };
    await cache.clear();
    await read();
    assert.deepEqual(await read(), [server.body, 100, []]);
  }
  for (const control of ["max-age=60, no-cache", "max-age=0", "max-age=60"]) {
    server.headers = { "Cache-Control": control, Age: "60" };
    await cache.clear();
    await read();
    assert.deepEqual(await read(), [server.body, 100, ['"1"']]);
  }
  await cache.clear();
  server.headers = { "Cache-Control": "no-store" };
  await read();
  assert.equal(store.bytes, 0);
  [server.headers, server.etag] = [{}, undefined]; // one could never tell whether it is the same
  await read();
  assert.equal(store.bytes, 0);
});

test("a file without a tag is known by its date and length", async (t) => {
  const { server, read } = await setUp(t);
  server.etag = undefined;
  server.headers = { "Last-Modified": new Date(Date.now() - 3_600_000).toUTCString() };
  await read();
  assert.deepEqual(await read(), [server.body, 100, ["GET"]]); // this server answers 200, whose validators are equal
  server.body = randomBytes(101);
  assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
});

test("without a network, and when the server has failed, the stored file is used", async (t) => {
  const { server, read } = await setUp(t);
  await read();
  server.status = 503;
  assert.deepEqual((await read()).slice(0, 2), [server.body, 100]);
  server.status = 403;
  await assert.rejects(read(), (error) => error instanceof FetchError && error.status === 403);
  const { url } = server;
  const reachable = globalThis.fetch;
  t.after(() => (globalThis.fetch = reachable));
  globalThis.fetch = () => Promise.reject(new TypeError("no network"));
  assert.deepEqual(await read(), [server.body, 100, []]);
  server.url = `${url}/other`;
  await assert.rejects(read(), /FetchError: load: expected a file at .*other, got no answer: no network/);
});

test("a file that a server does not have is known to be missing without a network", async (t) => {
  const { server, cache, read } = await setUp(t);
  await read();
  server.status = 404;
  await assert.rejects(read(), (error) => error instanceof FetchError && error.status === 404);
  assert.deepEqual(await cache.list(), []);
  server.status = 500;
  await assert.rejects(read(), /got no answer, and status 404 before/);
  server.status = undefined;
  assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
});

test("a download that breaks off is continued at once", async (t) => {
  const { server, read } = await setUp(t, randomBytes(BLOCK + 1000));
  server.breaks = [100, 200];
  const [bytes, cached, requests] = await read();
  assert.ok(bytes.equals(server.body));
  assert.deepEqual([cached, requests], [0, ["GET", 'bytes=100- "1"', 'bytes=300- "1"']]);
  assert.deepEqual(await read(), [server.body, server.body.length, ['"1"']]);
});

test("an interrupted download is resumed where it ended, and never taken for the file", async (t) => {
  const setup = await setUp(t, randomBytes(BLOCK + 1000));
  const { server, cache, read } = setup;
  assert.ok((await breakOff(setup, BLOCK + 10)) instanceof FetchError);
  const [file] = await cache.list();
  assert.deepEqual([file?.whole, file?.bytes], [false, BLOCK + 10]);
  const [bytes, cached, requests] = await read();
  assert.ok(bytes.equals(server.body));
  assert.deepEqual([cached, requests], [BLOCK + 10, [`bytes=${BLOCK + 10}- "1"`]]);
  assert.deepEqual(await read(), [server.body, server.body.length, ['"1"']]);
});

test("a server may send less than the rest: then it is asked again", async (t) => {
  for (const sendsLength of [true, false]) {
    const setup = await setUp(t);
    const { server, read } = setup;
    server.sendsLength = sendsLength;
    await breakOff(setup, 40);
    server.partLength = 25;
    const requests = [40, 65, 90].map((start) => `bytes=${start}- "1"`);
    assert.deepEqual(await read(), [server.body, 40, requests]);
    assert.deepEqual((await read())[1], 100);
  }
});

test("an interrupted download with a damaged block is resumed at that block", async (t) => {
  const setup = await setUp(t, randomBytes(2 * BLOCK + 1000));
  const { server, store, read } = setup;
  await breakOff(setup, 2 * BLOCK + 10);
  const [folder = "", name = ""] = store.blocks[1] ?? [];
  store.held.get(folder)?.delete(name);
  const requests = [2 * BLOCK + 10, BLOCK].map((start) => `bytes=${start}- "1"`);
  assert.deepEqual(await read(), [server.body, BLOCK, requests]);
  assert.deepEqual((await read())[1], server.body.length);
});

test("blocks of an old version are removed when the new one arrives, also if that is interrupted", async (t) => {
  const setup = await setUp(t);
  const { server, store, cache, read } = setup;
  await read();
  [server.body, server.etag] = [randomBytes(90), '"2"'];
  await breakOff(setup, 40);
  assert.equal((await cache.list())[0]?.bytes, 40);
  assert.equal(store.blocks.length, 1);
});

test("a part is not used when the file has changed, nor without a length", async (t) => {
  const setup = await setUp(t);
  const { server, read } = setup;
  server.sendsLength = false;
  await breakOff(setup, 40);
  [server.body, server.etag] = [randomBytes(90), '"2"'];
  assert.deepEqual(await read(), [server.body, 0, ['bytes=40- "1"']]);
  assert.deepEqual(await read(), [server.body, 90, ['"2"']]);
});

test("a server without ranges, and one that lies about them, sends the whole file", async (t) => {
  const lies: ((headers: Record<string, string>) => void)[] = [
    (headers) => (headers["Content-Range"] = "bytes 39-99/100"),
    (headers) => (headers["Content-Range"] = "bytes 40-99/101"),
    (headers) => (headers["Content-Range"] = "40"),
    (headers) => delete headers["Content-Range"],
    (headers) => (headers.ETag = '"2"'),
    (headers) => (headers["Content-Encoding"] = "br"),
  ];
  const setup = await setUp(t);
  const { server, cache, read } = setup;
  for (const lie of lies) {
    await cache.clear();
    server.lie = undefined;
    await breakOff(setup, 40);
    server.lie = lie;
    assert.deepEqual(await read(), [server.body, 0, ['bytes=40- "1"', "GET"]], String(lie));
  }
  await cache.clear();
  server.lie = undefined;
  await breakOff(setup, 40);
  server.takesRanges = false;
  assert.deepEqual(await read(), [server.body, 0, ['bytes=40- "1"']]);
  // A server without ranges sends all once more, and the reader gets the rest.
  await cache.clear();
  server.breaks = [40];
  assert.deepEqual(await read(), [server.body, 0, ["GET", 'bytes=40- "1"']]);
});

test("a part that nobody asked for is an error, and nothing of it is stored", async (t) => {
  const { server, read } = await setUp(t);
  server.status = 206;
  await assert.rejects(read(), /expected the whole file at .*, got a part of it/);
  server.status = undefined;
  server.requests.length = 0;
  assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
});

test("a file with a weak tag is not resumed", async (t) => {
  const setup = await setUp(t);
  const { server, store, read } = setup;
  server.etag = 'W/"1"';
  await breakOff(setup, 40);
  assert.equal(store.bytes, 0);
  assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
  assert.deepEqual(await read(), [server.body, 100, ['W/"1"']]);
});

test("a file that changes while it is read is an error, and the next try has the new one", async (t) => {
  const { server, cache, read } = await setUp(t);
  const file = await cache.open(server.url, "load");
  await collect(file, {});
  server.breaks = [40];
  await cache.clear();
  const reading = cache.open(server.url, "load").then(async (opened) => {
    for await (const piece of opened.pieces)
      if (piece.length > 0) [server.body, server.etag] = [randomBytes(100), '"2"'];
  });
  await assert.rejects(reading, /FetchError: load: .* it changed while it was read, so try again/);
  assert.deepEqual(await cache.list(), []);
  assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
});

test("a damaged or lost block is not used: the rest comes from the network", async (t) => {
  for (const damage of ["changed", "cut", "lost"]) {
    const { server, store, read } = await setUp(t, randomBytes(2 * BLOCK + 5));
    await read();
    const [folder = "", name = ""] = store.blocks[1] ?? [];
    const block = store.held.get(folder)?.get(name) ?? new Uint8Array();
    if (damage === "changed") block[7] = (block[7] ?? 0) ^ 1;
    else if (damage === "cut") store.held.get(folder)?.set(name, block.slice(1));
    else store.held.get(folder)?.delete(name);
    assert.deepEqual(await read(), [server.body, BLOCK, ['"1"', `bytes=${BLOCK}- "1"`]]);
    assert.deepEqual(await read(), [server.body, server.body.length, ['"1"']]);
  }
});

test("a manifest that is damaged or of another file is none", async (t) => {
  const { server, store, cache, read } = await setUp(t);
  for (const text of ["{", "null", '{"format":0}', `{"format":1,"url":"http://localhost/other"}`]) {
    await read();
    const folder = [...store.held.keys()][0] ?? "";
    store.held.get(folder)?.set("manifest.json", new TextEncoder().encode(text));
    assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
  }
  store.held.set("rubbish", new Map([["a", new Uint8Array(9)]]));
  assert.equal((await cache.list()).length, 1);
  assert.ok(!store.held.has("rubbish"));
});

test("a digest is checked, also of stored and resumed files, and makes asking needless", async (t) => {
  const setup = await setUp(t, randomBytes(BLOCK + 100));
  const { server, store, cache, read } = setup;
  const right = sha256(server.body);
  const wrong = sha256(randomBytes(3));
  await assert.rejects(
    read({ sha256: wrong }),
    new RegExp(`expected a file of SHA-256 ${wrong} .* got ${right}`),
  );
  assert.equal(store.bytes, 0);
  await assert.rejects(
    read({ sha256: "ab" }),
    /RangeError: load: sha256: expected 64 hexadecimal digits, got "ab"/,
  );
  await breakOff(setup, BLOCK + 3);
  assert.deepEqual((await read({ sha256: right }))[1], BLOCK + 3);
  assert.deepEqual(await read({ sha256: right.toUpperCase() }), [server.body, server.body.length, []]);
  await assert.rejects(read({ sha256: wrong }), /expected a file of SHA-256/);
  await read(); // without a digest
  assert.deepEqual(await read({ sha256: right }), [server.body, 0, ["GET"]]);
  // A block that is damaged: then all bytes are fetched, and looked at.
  const [folder = "", name = ""] = store.blocks[1] ?? [];
  store.held.get(folder)?.delete(name);
  assert.deepEqual(await read({ sha256: right }), [server.body, BLOCK, ["GET"]]);
  assert.deepEqual(await read({ sha256: right }), [server.body, server.body.length, []]);
  store.held.get(folder)?.delete(name);
  [server.body, server.etag] = [randomBytes(server.body.length), '"2"'];
  await assert.rejects(read({ sha256: right }), /expected a file of SHA-256/);
  assert.deepEqual(await cache.list(), []);
  const pieces = { pieces: (await cache.open(server.url, "load", { cache: false })).pieces };
  await assert.rejects(
    collect(cache.verified(pieces, "load", "x", { sha256: right }), {}),
    /SHA-256 .* at x, got/,
  );
});

test("those files that were not used for the longest time make room for others", async (t) => {
  const { server, cache, read } = await setUp(t, randomBytes(100));
  const { url } = server;
  cache.limit = 250;
  for (const name of ["a", "b", "a", "c"]) {
    server.url = `${url}/${name}`;
    await read();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const names = async (): Promise<string[]> =>
    (await cache.list()).map((file) => file.url.slice(url.length + 1));
  assert.deepEqual(await names(), ["a", "c"]);
  server.body = randomBytes(251);
  server.url = `${url}/large`;
  assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
  server.sendsLength = false;
  assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
  assert.ok((await names()).every((name) => name !== "large"));
  assert.equal(await cache.delete(`${url}/large`), false);
});

test("a store without room, or that cannot be written, costs time alone", async (t) => {
  const { server, store, cache, read } = await setUp(t, randomBytes(BLOCK + 9));
  const { url } = server;
  store.quota = 1.5 * BLOCK;
  await read();
  server.url = `${url}/other`;
  assert.deepEqual((await read())[0], server.body);
  assert.deepEqual(
    (await cache.list()).map((file) => file.url),
    [server.url],
  );
  server.body = randomBytes(2 * BLOCK);
  server.url = `${url}/large`;
  for (let i = 0; i < 2; i++) assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
  assert.equal(store.bytes, 0);
  server.body = randomBytes(100);
  await read();
  store.refusal = new Error("read-only");
  assert.deepEqual(await read(), [server.body, 100, ['"1"']]);
  for (const open of [() => Promise.resolve(undefined), () => Promise.reject(new Error("denied"))]) {
    const none = cacheOf(open);
    assert.deepEqual(await read({}, none), [server.body, 0, ["GET"]]);
    assert.deepEqual([await none.list(), await none.delete(url)], [[], false]);
    await none.clear();
  }
});

test("two readers at once, of one version and of two, read what the server has", async (t) => {
  const { server, store, read } = await setUp(t, randomBytes(3 * BLOCK + 1));
  const results = await Promise.all([read(), read({}, onStore(store)), read({}, onStore(store))]);
  for (const [bytes] of results) assert.ok(bytes.equals(server.body));
  assert.deepEqual((await read()).slice(0, 2), [server.body, server.body.length]);
  const old = server.body;
  const first = read();
  await first;
  const opened = await onStore(store).open(server.url, "load"); // reads the old file while the new one is stored
  const iterator = opened.pieces[Symbol.asyncIterator]();
  const start = await iterator.next();
  assert.ok(start.done !== true && sha256(old.subarray(0, BLOCK)) === sha256(start.value));
  [server.body, server.etag] = [randomBytes(2 * BLOCK), '"2"'];
  assert.ok((await read())[0].equals(server.body));
  await assert.rejects(iterator.next(), /it changed while it was read/);
  assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
});

test("a reader that leaves early, and an abort, keep what has arrived", async (t) => {
  const { server, cache, read } = await setUp(t, randomBytes(BLOCK + 5));
  for await (const piece of (await cache.open(server.url, "load")).pieces) if (piece.length > 0) break;
  const [left] = await cache.list();
  assert.ok(left !== undefined && !left.whole && left.bytes > 0);
  const stop = new AbortController();
  const reason = new Error("enough");
  const file = await cache.open(server.url, "load", { signal: stop.signal });
  const options = {
    signal: stop.signal,
    onProgress: () => {
      stop.abort(reason);
    },
  };
  await assert.rejects(collect(file, options), (error) => error === reason);
  await assert.rejects(cache.open(server.url, "load", { signal: stop.signal }), (error) => error === reason);
  const [bytes, cached] = await read();
  assert.ok(bytes.equals(server.body));
  assert.ok(cached >= left.bytes);
});

test("files of other origins are asked for without headers that those have to allow", async (t) => {
  const setup = await setUp(t);
  const { server, read } = setup;
  Object.assign(globalThis, { location: new URL("https://page.example/") });
  t.after(() => Reflect.deleteProperty(globalThis, "location"));
  await read();
  assert.deepEqual(await read(), [server.body, 100, ["GET"]]);
  await setup.cache.clear();
  await breakOff(setup, 40);
  assert.deepEqual(await read(), [server.body, 40, ["bytes=40- undefined"]]);
  for (const hidden of ["ETag", "Content-Range"]) {
    await setup.cache.clear();
    server.lie = undefined;
    await breakOff(setup, 40);
    server.lie = (headers) => Reflect.deleteProperty(headers, hidden);
    assert.deepEqual(await read(), [server.body, 0, ["bytes=40- undefined", "GET"]]);
  }
  // An origin that allows no range: the browser has no answer.
  await setup.cache.clear();
  server.lie = undefined;
  await breakOff(setup, 40);
  const { fetch } = globalThis;
  t.after(() => (globalThis.fetch = fetch));
  globalThis.fetch = (url, init) =>
    new Headers(init?.headers).has("range") ? Promise.reject(new TypeError("blocked")) : fetch(url, init);
  assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
  // An address of the page's origin, from which the server sends it to such an origin.
  Object.assign(globalThis, { location: new URL(server.url) });
  globalThis.fetch = (url, init) => {
    const isPlain = [...new Headers(init?.headers)].length === 0;
    return isPlain ? fetch(url, init) : Promise.reject(new TypeError("blocked"));
  };
  assert.deepEqual(await read(), [server.body, 100, ["GET"]]);
  await setup.cache.clear();
  await breakOff(setup, 40);
  assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
});

test("a file that cannot be removed makes no room, and is told of by clear, after the others", async (t) => {
  const { server, store, cache, read } = await setUp(t);
  const { url } = server;
  cache.limit = 250;
  await read();
  const [locked = ""] = store.held.keys();
  store.locked.add(locked);
  for (const name of ["a", "b"]) {
    server.url = `${url}/${name}`;
    await read();
  }
  assert.deepEqual((await cache.list()).map((file) => file.url).sort(), [url, `${url}/b`]);
  await assert.rejects(cache.clear(), /in use/);
  assert.deepEqual([...store.held.keys()], [locked]);
});

test("clear and delete remove files", async (t) => {
  const { server, store, cache, read } = await setUp(t);
  await read();
  assert.equal(await cache.delete(new URL(`${server.url}#part`)), true);
  assert.equal(store.held.size, 0);
  await read();
  await cache.clear();
  assert.equal(store.held.size, 0);
  assert.deepEqual(await read(), [server.body, 0, ["GET"]]);
});
