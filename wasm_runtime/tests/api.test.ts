/** The parts of the JavaScript API that need no Python: data, arguments, indices, files, and the worker's protocol. */

import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";

import { abortable } from "../src/abort";
import { flatten } from "../src/arrays";
import { PieceReader } from "../src/pieces";
import type { Progress } from "../src/progress";
import { collect } from "../src/source";
import { WorkerTransport, type FromWorker, type Item, type ToWorker } from "../src/api/client";
import { pack, packArray, type NestedData } from "../src/api/data";
import { DirectTransport } from "../src/api/direct";
import { asArray, halfToNumber, nest, toDType, type DType } from "../src/api/dtypes";
import { encode, encodePlain, isOptions } from "../src/api/encode";
import { describe as describeError, errorFrom, NotImplementedError, PythonError } from "../src/api/errors";
import { describeTensor, formatElements } from "../src/api/format";
import {
  ArgumentError,
  CaptureError,
  FetchError,
  PolygradError,
  ShapeError,
} from "../src/api/generated/errors";
import { Handle, type Owner } from "../src/api/handle";
import { pythonOptions } from "../src/api/options";
import { readTensors } from "../src/api/safetensors";
import { SessionServer } from "../src/api/server";
import { ELLIPSIS, parseSlice, slice } from "../src/api/slice";
import { FileCache } from "../src/cache/file_cache";
import { StoredFiles } from "../src/cache/stored_files";
import type { Bridge, Operation, TableQuestion } from "../src/api/transport";

const refuse = (): never => {
  throw new Error("no array is expected here");
};

const owner = { adopt: () => undefined } as unknown as Owner;

test("nested arrays are flattened with their shape, and ragged ones are errors", () => {
  const none = (): Error => new Error("not ragged");
  assert.deepEqual(flatten(3, none), { flat: [3], shape: [] });
  assert.deepEqual(flatten([[1], [2]], none), { flat: [1, 2], shape: [2, 1] });
  assert.deepEqual(flatten([[], []], none), { flat: [], shape: [2, 0] });
  assert.throws(() => pack([[1], 2]), ShapeError);
  assert.throws(() => pack([1, [2]]), /expected 1 elements in every array at depth 1, got a scalar/);
  assert.throws(() => pack([[1], [2, 3]]), /expected 1 elements in every array at depth 1, got 2/);
});

test("numbers become bytes of every integer dtype, at both ends of its range", () => {
  for (const bits of [8, 16, 32, 64]) {
    const ends: [DType, bigint, bigint][] = [
      [`int${bits}` as DType, -(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n],
      [`uint${bits}` as DType, 0n, 2n ** BigInt(bits) - 1n],
    ];
    for (const [dtype, low, high] of ends) {
      const { bytes, dtype: got, cast } = pack([low, high], dtype);
      assert.deepEqual([got, cast], [dtype, undefined]);
      assert.deepEqual(Array.from(asArray(bytes.slice().buffer, dtype), BigInt), [low, high]);
      assert.throws(() => pack([high + 1n], dtype), /expected integers in/);
      assert.throws(() => pack([low - 1n], dtype), /expected integers in/);
    }
  }
  assert.deepEqual(Array.from(pack([1.9, -1.9, NaN, Infinity], "int8").bytes), [1, 255, 0, 127]);
});

test("raw bytes are whole elements", () => {
  assert.deepEqual(packArray(new Float32Array(8).buffer, "float16").shape, [16]);
  assert.throws(() => packArray(new ArrayBuffer(6), "float32"), /expected a multiple of 4 bytes/);
  const view = packArray(new Float32Array([1, 2, 3]).subarray(1));
  assert.deepEqual([view.bytes.length, view.shape], [8, [2]]);
});

test("every half-precision number is what it is defined to be", () => {
  for (const [bits, value] of [
    [0x0000, 0],
    [0x0001, 2 ** -24],
    [0x03ff, 1023 * 2 ** -24],
    [0x3c00, 1],
    [0xc000, -2],
    [0x7bff, 65504],
    [0x7c00, Infinity],
    [0xfc00, -Infinity],
    [0x7e00, NaN],
  ] as const) {
    assert.equal(halfToNumber(bits), value);
  }
});

test("elements are nested to their shape, also where a size is 0", () => {
  const array = Float32Array.of(1, 2, 3, 4);
  assert.deepEqual(nest(array, "float32", [2, 1, 2]), [[[1, 2]], [[3, 4]]]);
  assert.deepEqual(nest(new Float32Array(), "float32", [2, 0]), [[], []]);
  assert.deepEqual(nest(new Float32Array(), "float32", [0, 2]), []);
  assert.deepEqual(nest(Uint16Array.of(0x3f80), "bfloat16", []), 1);
  assert.deepEqual(nest(Uint8Array.of(0, 1), "bool", [2]), [false, true]);
});

test("elements are shown in columns, and many of them by their ends", () => {
  const shown = (data: NestedData, dtype?: DType): string => {
    const { bytes, dtype: own, shape } = pack(data, dtype);
    return formatElements(asArray(bytes.slice().buffer, own), own, shape);
  };
  assert.equal(
    shown([
      [1, -2.5],
      [100, 1 / 3],
    ]),
    "[[      1,    -2.5],\n [    100, 0.33333]]",
  );
  assert.equal(
    shown([
      [[1], [2]],
      [[3], [4]],
    ]),
    "[[[1],\n  [2]],\n [[3],\n  [4]]]",
  );
  assert.equal(shown(2.5), "2.5");
  assert.equal(shown([true, false]), "[ true, false]");
  assert.equal(shown([1n, -20n]), "[  1, -20]");
  assert.equal(shown([NaN, Infinity, 1e-12]), "[     NaN, Infinity,    1e-12]");
  assert.equal(shown([]), "[]");
  assert.equal(shown([[], []]), "[[],\n []]");
  const many = shown(
    Array.from({ length: 1001 }, (_, i) => i),
    "int32",
  );
  assert.equal(many, "[   0,    1,    2, …,  998,  999, 1000]");
  assert.equal(describeTensor("Tensor", { shape: [2, 3], dtype: "int8" }), "Tensor [2, 3] int8");
  assert.equal(describeTensor("Tensor", {}), "Tensor [?]");
});

test("dtypes go by their names and C's", () => {
  assert.equal(toDType("long"), "int64");
  assert.throws(() => toDType("float31" as DType), /expected one of bool, int8/);
});

test("plain arguments travel as they are, lists of integers as text, and others need JSON", () => {
  const out: unknown[] = [];
  assert.equal(encodePlain(owner, [1.5, "a", true, null, [2, -1], 7n], out as never[]), 0b10000 * 2 ** 24);
  assert.deepEqual(out, [1.5, "a", true, undefined, "2,-1", 7n]);
  for (const needsJson of [-0, [1.5], [-0], [], [[1]], {}, new Float32Array(1)]) {
    assert.equal(encodePlain(owner, [needsJson], []), -1);
  }
  assert.equal(encodePlain(owner, Array(25).fill(1), []), -1);
  const handle = (number: number): Handle => new Handle(owner, number);
  const numbers: unknown[] = [];
  assert.equal(encodePlain(owner, [handle(8), 1, handle(9)], numbers as never[]), 0b101);
  assert.deepEqual(numbers, [8, 1, 9]);
});

test("JSON keeps what Python tells apart", () => {
  const cases: [unknown, string][] = [
    [-0, "-0.0"],
    [NaN, "NaN"],
    [-Infinity, "-Infinity"],
    [1e21, "1e+21"],
    [2 ** 60, "1152921504606847000.0"],
    [2n ** 70n, "1180591620717411303424"],
    [[1, [null]], "[1,[null]]"],
    [{ s: 1 }, '{"d":[["s",1]]}'],
    [slice(1, null), '{"s":[1,null,null]}'],
    [ELLIPSIS, '{"e":0}'],
  ];
  for (const [value, text] of cases) assert.equal(encode(owner, value, refuse).text, text);
  assert.throws(() => encode(owner, new Date(), refuse), /got a Date/);
  assert.ok(isOptions({}) && !isOptions([]) && !isOptions(new Map()) && !isOptions(null));
});

test("options go by Python's names, without those that it does not take", () => {
  const names = { maxNewTokens: true, stop: true, topK: true, signal: true } as const;
  const given = { maxNewTokens: 3, topK: undefined, stop: null, signal: AbortSignal.abort() };
  assert.deepEqual(pythonOptions("generate", given, names, ["signal"]), { max_new_tokens: 3, stop: null });
  assert.deepEqual(pythonOptions("generate", {}, names, ["signal"]), {});
  const refused: [unknown, RegExp][] = [
    [
      { max_new_tokens: 3 },
      /generate: expected options among maxNewTokens, stop, topK, signal, got max_new_tokens/,
    ],
    [{ constructor: undefined }, /got constructor/],
    [null, /generate: expected an object with options among maxNewTokens, .*, got null/],
  ];
  for (const [options, message] of refused) {
    assert.throws(() => pythonOptions("generate", options, names, ["signal"]), message);
  }
});

test("slices are read as Python writes them", () => {
  assert.deepEqual(parseSlice("1:-3"), slice(1, -3));
  assert.deepEqual(parseSlice("::2"), slice(null, null, 2));
  assert.deepEqual(parseSlice(":"), slice());
  for (const wrong of ["1", "a:b", "1:2:3:4", ""]) assert.equal(parseSlice(wrong), undefined);
});

// --- safetensors

function file(header: object, data: number[]): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(8 + text.length + data.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
  bytes.set(text, 8);
  bytes.set(data, 8 + text.length);
  return bytes;
}

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
}

async function read(bytes: Uint8Array, size = 5): Promise<Record<string, number[]>> {
  const found: Record<string, number[]> = {};
  for await (const [{ name }, data] of readTensors(new PieceReader(inPieces(bytes, size)))) {
    found[name] = Array.from(data);
  }
  return found;
}

test("tensors of a file come in the order of the data, in whatever pieces it arrives", async () => {
  const header = {
    __metadata__: { a: "b" },
    late: { dtype: "U8", shape: [2], data_offsets: [4, 6] },
    early: { dtype: "F32", shape: [], data_offsets: [0, 4] },
  };
  const bytes = file(header, [1, 2, 3, 4, 5, 6]);
  for (const size of [1, 3, 1000]) {
    assert.deepEqual(await read(bytes, size), { early: [1, 2, 3, 4], late: [5, 6] });
  }
});

test("a damaged file is an error that says where", async () => {
  const entry = { dtype: "U8", shape: [2], data_offsets: [0, 2] };
  const damaged: [Uint8Array, RegExp][] = [
    [file({ a: entry }, [1]), /expected 2 more bytes, got 1/],
    [file({ a: { ...entry, dtype: "X" } }, [1, 2]), /a: expected dtype, shape and data_offsets/],
    [file({ a: { ...entry, shape: [3] } }, [1, 2]), /a: expected 3 bytes, got 0..2/],
    [file({ a: entry, b: { ...entry, data_offsets: [1, 3] } }, [1, 2, 3]), /b: expected data of its own/],
    [file([], []), /expected a JSON object/],
    [new Uint8Array([255, 255, 255, 255, 255, 255, 255, 255]), /a header of at most/],
    [new Uint8Array(3), /expected 8 more bytes/],
  ];
  for (const [bytes, message] of damaged) await assert.rejects(read(bytes), message);
});

// --- downloads

/** A cache on a host without a store: files come from the network. */
const network = new FileCache(() => Promise.resolve(new StoredFiles(() => Promise.resolve(undefined))));

/** The address of a server that answers with these, one a request. It ends with the test. */
async function served(t: TestContext, ...answers: RequestListener[]): Promise<string> {
  const server = createServer((request, response) => answers.shift()?.(request, response));
  await new Promise<void>((resolve) => {
    server.listen(0, "localhost", resolve);
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://localhost:${(server.address() as AddressInfo).port}/file`;
}

test("a download that fails is a FetchError with its address and status", async (t) => {
  const url = await served(
    t,
    (_, response) => response.writeHead(404).end(),
    (_, response) => {
      response.writeHead(200, { "Content-Length": "10" }).write("half", () => response.destroy());
    },
  );
  const failed = async (): Promise<unknown> =>
    collect(await network.open(url, "load"), {}).catch((error: unknown) => error);
  const missing = await failed().catch((error: unknown) => error);
  assert.ok(missing instanceof FetchError);
  assert.deepEqual([missing.url, missing.status], [url, 404]);
  assert.equal(missing.message, `load: expected a file at ${url}, got status 404`);
  const broken = await failed();
  assert.ok(broken instanceof FetchError && broken.cause instanceof Error);
  assert.deepEqual([broken.url, broken.status], [url, undefined]);
  await assert.rejects(
    network.open("http://localhost:9/x", "load"),
    /FetchError: load: .*x, got no answer: /,
  );
  const sent = errorFrom(describeError(missing));
  assert.ok(sent instanceof FetchError && sent.status === 404 && sent.url === url);
});

test("progress rises to 1, with the length that the server sends or without one", async (t) => {
  const body = "0123456789";
  const url = await served(
    t,
    (_, response) => response.writeHead(200, { "Content-Length": "10" }).end(body),
    (_, response) => response.writeHead(200).end(body),
  );
  for (const total of [10, undefined]) {
    const seen: Progress[] = [];
    const file = await network.open(url, "load");
    assert.equal(file.length, total);
    const bytes = await collect(file, { onProgress: (event) => seen.push(event) });
    assert.equal(new TextDecoder().decode(bytes), body);
    assert.deepEqual(seen.at(-1), { stage: "download", fraction: 1, loaded: 10, total: 10 });
    assert.ok(seen.every(({ fraction }, i) => fraction >= (seen[i - 1]?.fraction ?? 0)));
  }
});

test("a signal stops a download, before it begins and between its pieces", async (t) => {
  const url = await served(t, (_, response) => response.writeHead(200).write("a beginning"));
  const stop = new AbortController();
  const file = await network.open(url, "load", { signal: stop.signal });
  const reason = new RangeError("enough");
  const options = {
    signal: stop.signal,
    onProgress: () => {
      stop.abort(reason);
    },
  };
  await assert.rejects(collect(file, options), (error) => error === reason);
  await assert.rejects(network.open(url, "load", { signal: stop.signal }), (error) => error === reason);
  await assert.rejects(abortable(new Promise(() => undefined), stop.signal), (error) => error === reason);
  const later = new AbortController();
  let stopped = 0;
  const pending = abortable(new Promise(() => undefined), later.signal, () => stopped++);
  later.abort();
  await assert.rejects(pending, /AbortError/);
  assert.equal(stopped, 1);
  const done = new AbortController();
  assert.equal(await abortable(Promise.resolve(1), done.signal, () => stopped++), 1);
  done.abort();
  assert.equal(stopped, 1);
});

// --- the worker's protocol

function value(handle: number): TableQuestion {
  return { kind: "value", handle };
}

/** A bridge that keeps what it is told, and fails what is called `fail`. */
class FakeBridge implements Bridge {
  readonly done: unknown[] = [];
  readonly failures = new Map<number, string>();

  run(operation: Operation): string | undefined {
    if (operation.kind === "call") return this.call(operation.name);
    this.done.push(operation);
    return undefined;
  }

  call(name: string): string | undefined {
    this.done.push(name);
    return name === "fail" ? describeError(new RangeError("it failed")) : undefined;
  }

  fail(handle: number, text: string): void {
    this.failures.set(handle, text);
  }

  ask(question: TableQuestion): { value: unknown } | { error: string } {
    const handle = question.kind === "call_waiting" ? question.result : question.handle;
    const failure = this.failures.get(handle);
    return failure === undefined ? { value: [question.kind, handle] } : { error: failure };
  }

  wait(question: TableQuestion): Promise<{ value: unknown } | { error: string }> {
    return Promise.resolve(this.ask(question));
  }

  python(code: string): Promise<unknown> {
    return code === "raise" ? Promise.reject(new TypeError("raised")) : Promise.resolve(code);
  }

  close(): void {
    this.done.push("close");
  }

  /** Calls of the host wait until one is the last. */
  readonly #calls: (() => void)[] = [];

  host(method: string, [kind]: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#calls.push(() => {
        resolve(method);
      });
      if (kind === "fail") reject(Object.assign(new Error("no"), { name: "PythonError", type: "OSError" }));
      else if (kind === "last") for (const call of this.#calls) call();
    });
  }
}

function connected(): {
  transport: WorkerTransport;
  bridge: FakeBridge;
  sent: Item[][];
  fail: (reason: string) => void;
} {
  const bridge = new FakeBridge();
  const sent: Item[][] = [];
  let receive: (message: FromWorker) => void = refuse;
  let fail: (reason: string) => void = refuse;
  const server = new SessionServer(bridge, (message) => {
    receive(message);
  });
  const transport = new WorkerTransport({
    send(message: ToWorker) {
      sent.push(message.items);
      server.receive(message);
    },
    receive: (listener) => (receive = listener),
    failed: (listener) => (fail = listener),
    busy: () => undefined,
    close: () => undefined,
  });
  return { transport, bridge, sent, fail: (reason) => fail(reason) }; // eslint-disable-line
}

test("operations of one task are one message, in order with the questions", async () => {
  const { transport, bridge, sent } = connected();
  transport.call("a", 1, 0, "", []);
  transport.send({ kind: "unpack", source: 1, first: 2, count: 3 });
  const answer = transport.ask(value(1));
  transport.call("b", 0, 0, "", []);
  assert.deepEqual(await answer, ["value", 1]);
  assert.deepEqual(
    [sent.length, bridge.done],
    [1, ["a", { kind: "unpack", source: 1, first: 2, count: 3 }, "b"]],
  );
});

test("a failed operation is the error of its result, and of the next answer if it has none", async () => {
  const { transport } = connected();
  transport.call("fail", 5, 0, "", []);
  assert.deepEqual(await transport.ask(value(4)), ["value", 4]);
  await assert.rejects(transport.ask(value(5)), /RangeError: it failed/);
  transport.call("fail", 0, 0, "", []);
  await assert.rejects(transport.ask(value(4)), /it failed/);
  assert.deepEqual(await transport.ask(value(4)), ["value", 4]);
  await assert.rejects(transport.ask({ kind: "python", code: "raise" }), /TypeError: raised/);
});

test("calls of the host's own wait for each other, and hold up nothing", async () => {
  const { transport } = connected();
  const first = transport.ask({ kind: "host", method: "wait", args: ["first"] });
  assert.deepEqual(await transport.ask(value(4)), ["value", 4]);
  assert.equal(await transport.ask({ kind: "host", method: "end", args: ["last"] }), "end");
  assert.equal(await first, "wait");
  const failed = await transport
    .ask({ kind: "host", method: "fail", args: ["fail"] })
    .catch((error: unknown) => error);
  assert.ok(failed instanceof PythonError);
  assert.deepEqual([failed.name, failed.type, failed.message], ["PythonError", "OSError", "no"]);
});

test("when the worker fails, what is pending and what comes later rejects", async () => {
  const { transport, fail } = connected();
  const pending = transport.ask({ kind: "python", code: "1" });
  fail("out of luck");
  await assert.rejects(pending, /the worker failed: out of luck/);
  await assert.rejects(transport.ask(value(1)), PolygradError);
  assert.throws(() => {
    transport.call("a", 1, 0, "", []);
  }, /out of luck/);
});

test("a session on this thread that was closed frees its objects, and refuses what comes later", async () => {
  const bridge = new FakeBridge();
  const transport = new DirectTransport(bridge);
  transport.call("a", 1, 0, "", []);
  const pending = transport.ask(value(1));
  transport.close();
  transport.close();
  assert.deepEqual(bridge.done, ["a", "close"]);
  assert.deepEqual(await pending, ["value", 1]);
  assert.throws(() => {
    transport.call("b", 2, 0, "", []);
  }, /PolygradError: polygrad: the session was closed/);
  assert.throws(() => transport.askSync(value(1)), /closed/);
  await assert.rejects(transport.ask({ kind: "python", code: "1" }), /closed/);
});

test("Python calls a body on this thread, and what it throws is the operation's error, once", () => {
  const transport = new DirectTransport(new FakeBridge());
  const body = transport.body(() => "[1]");
  assert.equal(typeof body === "function" && body(), "[1]");
  const mine = new TypeError("mine");
  const failing = transport.body(() => {
    throw mine;
  });
  assert.throws(failing as () => string, mine);
  const call = (): void => {
    transport.call("fail", 1, 0, "", []);
  };
  assert.throws(call, (error) => error === mine);
  assert.throws(call, /RangeError: it failed/);
});

test("a body is recorded, not sent, and asks nothing", async () => {
  const { transport, sent } = connected();
  const body = transport.body(() => {
    transport.call("a", 1, 0, "", []);
    return "{}";
  });
  const call = { kind: "call", name: "a", result: 1, handles: 0, keywords: "", args: [] };
  assert.deepEqual(body, { operations: [call], result: "{}" });
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(sent, []);
  const asked = transport.body(() => {
    assert.throws(() => transport.askSync(value(1)), CaptureError);
    return "null";
  });
  assert.deepEqual(asked, { operations: [], result: "null" });
  assert.throws(() => transport.askSync(value(1)), /got one in a worker/);
});

test("errors have the class, the message and the traceback of Python's", () => {
  const text = (type: string): string => JSON.stringify({ type, message: "m", traceback: "t" });
  const known = errorFrom(text("ArgumentError"));
  assert.ok(known instanceof ArgumentError && known instanceof PolygradError);
  assert.deepEqual([known.message, known.cause, known.name], ["m", "t", "ArgumentError"]);
  const other = errorFrom(text("OSError"));
  assert.ok(other instanceof PythonError && other instanceof PolygradError);
  assert.deepEqual([other.type, other.message, other.cause], ["OSError", "m", "t"]);
  const natives = {
    TypeError,
    ValueError: RangeError,
    IndexError: RangeError,
    KeyError: RangeError,
    SyntaxError,
  };
  for (const [type, own] of Object.entries({
    ...natives,
    ZeroDivisionError: RangeError,
    NotImplementedError,
  })) {
    const error = errorFrom(text(type));
    assert.deepEqual([error.constructor, error.message, error.cause], [own, "m", "t"]);
  }
  for (const error of [new RangeError("r"), new PythonError("p", "OSError"), new ArgumentError("a")]) {
    const back = errorFrom(describeError(error));
    assert.deepEqual([back.constructor, back.message], [error.constructor, error.message]);
  }
  const back = errorFrom(describeError(new PythonError("p", "OSError")));
  assert.ok(back instanceof PythonError && back.type === "OSError");
  assert.equal(errorFrom(describeError("text")).message, "text");
});
