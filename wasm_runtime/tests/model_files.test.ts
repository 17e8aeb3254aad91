/** Files of models: what an index of them says, and that no file stays open after an error or an abort. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { FileCache } from "../src/cache/file_cache";
import { StoredFiles } from "../src/cache/stored_files";
import { piecesOf, type OpenedFile } from "../src/source";
import { ArgumentError, FetchError } from "../src/api/generated/errors";
import { readModel } from "../src/api/model_files";
import { parseIndex } from "../src/api/safetensors";
import type { Session } from "../src/api/session";
import type { Host } from "../src/api/sources";
import { stateOf } from "../src/api/state";

const indexOf = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

test("an index says the file of each tensor, which lies beside it", () => {
  const files = { a: "model-1.safetensors", b: "model-2.safetensors", c: "model-1.safetensors" };
  assert.deepEqual(parseIndex(indexOf({ metadata: {}, weight_map: files }), "load"), files);
  assert.deepEqual(parseIndex(indexOf({ weight_map: {} }), "load"), {});
});

test("a damaged index, or one that names files elsewhere, is an error that says where", () => {
  const damaged: [Uint8Array, RegExp][] = [
    [new TextEncoder().encode("{"), /^ArgumentError: load: expected an index of JSON, got SyntaxError/],
    [Uint8Array.of(0xff), /^ArgumentError: load: expected an index of JSON, got TypeError/],
    [indexOf(null), /^ArgumentError: load: expected an index with a weight_map, got one without/],
    [indexOf({ weight_map: 3 }), /expected an index with a weight_map, got one without/],
    [indexOf({ weight_map: ["a"] }), /expected an index with a weight_map, got one without/],
  ];
  for (const [bytes, message] of damaged) assert.throws(() => parseIndex(bytes, "load"), message);
  for (const file of ["../a", "/a", "c:\\a", "a/b", "..", "", 3, null]) {
    const bytes = indexOf({ weight_map: { w: file } });
    assert.throws(
      () => parseIndex(bytes, "load"),
      /load: w: expected the name of a file beside the index, got/,
    );
  }
});

/** A host that has some files, of which each has no end; `unclosed` are those that nobody has closed. */
class EndlessFiles implements Host {
  readonly cache = new FileCache(() => Promise.resolve(new StoredFiles(() => Promise.resolve(undefined))));
  readonly unclosed = new Set<object>();
  opened = 0;
  readonly #names: RegExp;

  constructor(names: RegExp) {
    this.#names = names;
  }

  open(source: string | URL): Promise<OpenedFile> {
    const url = String(source);
    if (!this.#names.test(url)) return Promise.reject(new FetchError("none", { url, status: 404 }));
    this.opened++;
    const file = {};
    this.unclosed.add(file);
    const stream = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        controller.enqueue(new Uint8Array(1 << 20));
      },
      cancel: () => void this.unclosed.delete(file),
    });
    return Promise.resolve({ pieces: piecesOf(stream) });
  }
}

/** A session of which one function fails; small files and external data there are none. */
function failingSession(fails: string): Session {
  const answers: Record<string, unknown> = {
    "$pipelines.small_files": [],
    "$pipelines.Loading.feed": true,
  };
  const call = (name: string): Promise<unknown> =>
    name === fails ? Promise.reject(new RangeError(name)) : Promise.resolve(answers[name]);
  const nothing = (): void => undefined;
  const session = { value: call, valueWaiting: call, callPacked: () => 1, adopt: nothing, drop: nothing };
  return session as unknown as Session;
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

test("files of weights are closed after errors, those too of which nothing was read", async () => {
  const cases: [source: string, fails: string][] = [
    ["https://a.b/m", "$pipelines.small_files"],
    ["https://a.b/m", "$pipelines.Loading.begin"],
    ["https://a.b/m/model.gguf", "$pipelines.Loading.begin"],
    ["https://a.b/m/model.gguf", "$pipelines.Loading.feed"],
    ["https://a.b/m/model-00001-of-00002.gguf", "$pipelines.Loading.begin"],
    ["https://a.b/m/model-00001-of-00002.gguf", "$pipelines.Loading.feed"],
  ];
  for (const [source, fails] of cases) {
    const host = new EndlessFiles(/\.(safetensors|gguf)$/);
    const reading = readModel(failingSession(fails), host, "fill-mask", source, { python: {} });
    await assert.rejects(reading, new RangeError(fails));
    await settled();
    assert.deepEqual([host.opened, host.unclosed.size], [1, 0], `${source}: ${fails}`);
  }
});

test("files of weights are closed after an abort", async () => {
  for (const [source, opened] of [
    ["https://a.b/model.gguf", 1],
    ["https://a.b/model-00001-of-00002.gguf", 3], // the headers of both, and then the first
  ] as const) {
    const host = new EndlessFiles(/\.gguf$/);
    const stop = new AbortController();
    const reason = new RangeError("enough");
    const reading = readModel(failingSession("none"), host, "fill-mask", source, {
      python: {},
      signal: stop.signal,
      onProgress: () => {
        stop.abort(reason);
      },
    });
    await assert.rejects(reading, (error) => error === reason);
    await settled();
    assert.deepEqual([host.opened, host.unclosed.size], [opened, 0], source);
  }
});

test("an index without files is no model", async () => {
  const name = "model.safetensors.index.json";
  const source = { [name]: indexOf({ weight_map: {} }) };
  const host = new EndlessFiles(/^$/);
  const reading = readModel(failingSession("none"), host, "fill-mask", source, { python: {} });
  await assert.rejects(
    reading,
    /^ArgumentError: pipeline: model.safetensors.index.json: .* an empty weight_map/,
  );
});

test("a damaged file of safetensors is closed, and one that a signal stops", async () => {
  const host = new EndlessFiles(/\.safetensors$/);
  const state = stateOf(failingSession("none"), host);
  await assert.rejects(state.safeLoad("https://a.b/x.safetensors"), ArgumentError); // the header has no bytes
  assert.deepEqual([host.opened, host.unclosed.size], [1, 0]);
  const stop = new AbortController();
  const reason = new RangeError("enough");
  const onProgress = (): void => {
    stop.abort(reason);
  };
  const stopped = state.safeLoad("https://a.b/x.safetensors", { signal: stop.signal, onProgress });
  await assert.rejects(stopped, (error) => error === reason);
  assert.deepEqual([host.opened, host.unclosed.size], [2, 0]);
});
