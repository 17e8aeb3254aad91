/** What the API asks of Python, and what it makes of the answers, in sessions without one. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { packAny } from "../src/api/data";
import { Tuple } from "../src/api/encode";
import { fromImages } from "../src/api/datasets/from_images";
import { Examples } from "../src/api/datasets/examples";
import { ItemSource } from "../src/api/datasets/item_source";
import { StepCapture } from "../src/api/fit_steps";
import { jacobian, type JacobianOptions } from "../src/api/functional";
import { ArgumentError } from "../src/api/generated/errors";
import { Tensor } from "../src/api/generated/tensor";
import { tensorOf } from "../src/api/make";
import { PythonObject } from "../src/api/object";
import { number } from "../src/api/handle";
import { loadModel } from "../src/api/onnx";
import { pictureOf } from "../src/api/pictures";
import type { Host } from "../src/api/sources";
import { stateOf } from "../src/api/state";
import type { Question } from "../src/api/transport";
import { fillWith, pythonTree, treeOf } from "../src/api/trees";
import { FileCache } from "../src/cache/file_cache";
import { StoredFiles } from "../src/cache/stored_files";
import type { Progress } from "../src/progress";
import { recordedSession } from "./recording";

/** A host that reads bytes. */
const host = {
  cache: new FileCache(() => Promise.resolve(new StoredFiles(() => Promise.resolve(undefined)))),
} as unknown as Host;

test("objects have numbers of their own, and an operation of two results has two", () => {
  const { session, sent } = recordedSession();
  const x = tensorOf(session, [[1, 2]]);
  const results = [x, x.relu(), ...x.reshape(1, 1, 2).maxPool2d(1, { returnIndices: true })];
  const numbers = results.map((tensor) => tensor[number]);
  assert.equal(new Set(numbers).size, 4);
  const unpacked = sent.find((operation) => operation.kind === "unpack");
  assert.deepEqual([unpacked?.first, unpacked?.count], [numbers[2], 2]);
});

test("an object of another session is refused, as its number is another object's here", () => {
  const [{ session, sent }, other] = [recordedSession(), recordedSession()];
  const [x, foreign] = [tensorOf(session, [1]), tensorOf(other.session, [2])];
  assert.equal(x[number], foreign[number]);
  const count = sent.length;
  for (const call of [
    () => x.add(foreign),
    () => x.clamp({ min: foreign }),
    () => x.add([foreign, 1.5] as never),
    () => tensorOf(session, foreign),
  ]) {
    assert.throws(
      call,
      (error) =>
        error instanceof ArgumentError &&
        error.message.startsWith("argument: expected objects of one session, got one of another"),
    );
  }
  assert.equal(sent.length, count);
});

test("tensors are taken out of arrays and plain objects, and put back in order", () => {
  const { session } = recordedSession();
  const [a, b] = [tensorOf(session, 1), tensorOf(session, [2])];
  const { template, tensors } = treeOf(session, [a, { n: 3, b, empty: [] }, null], "f");
  assert.deepEqual(tensors, [a, b]);
  assert.deepEqual(fillWith(template, [10, 20]), [10, { n: 3, b: 20, empty: [] }, null]);
  assert.deepEqual(
    pythonTree(template, [10, 20], "other"),
    new Tuple([10, { n: "other", b: 20, empty: new Tuple([]) }, "other"]),
  );
  const outside = tensorOf(recordedSession().session, 1);
  for (const x of [new Map([["a", a]]), outside]) {
    assert.throws(
      () => treeOf(session, [x], "f"),
      /f: expected tensors, or arrays and plain objects of them/,
    );
  }
});

test("a Jacobian is like the argument that it is for: the first, unless another is named", () => {
  const { session } = recordedSession();
  const [x, y, z] = [tensorOf(session, [1, 2]), tensorOf(session, 3), tensorOf(session, 4)];
  const form = (options: JacobianOptions, mode: "jacrev" | "hessian" = "jacrev"): unknown => {
    const result = jacobian<[Tensor, object]>(session, mode, (a) => a.sin(), options)(x, { y, z });
    return JSON.parse(
      JSON.stringify(result, (_, part: unknown) => (part instanceof Tensor ? 0 : part)),
    ) as unknown;
  };
  const ofSecond = { y: 0, z: 0 };
  assert.deepEqual(form({}), 0);
  assert.deepEqual(form({ argnums: 1 }), ofSecond);
  assert.deepEqual(form({ argnums: [1, 0] }), [ofSecond, 0]);
  assert.deepEqual(form({ argnums: 1 }, "hessian"), { y: ofSecond, z: ofSecond });
});

test("a picture is a tensor that is the user's, or one of pixels that is made here", async () => {
  const { session } = recordedSession();
  const own = tensorOf(session, [1]);
  assert.deepEqual(await pictureOf(session, host, own), { tensor: own, isOwn: false });
  const pixels = { data: new Uint8Array(24), width: 3, height: 2 };
  const { tensor, isOwn } = await pictureOf(session, host, pixels);
  assert.deepEqual([tensor.shape, tensor.dtype, isOwn], [[2, 3, 3], "uint8", true]);
  for (const wrong of [5, "file.png"]) {
    await assert.rejects(pictureOf(session, host, wrong as string), ArgumentError);
  }
});

test("batches hold 32 examples, the last one what is left, unless options say otherwise", async () => {
  const { session } = recordedSession();
  const decode = (x: number) => [packAny([x], undefined), packAny(x, "int32")] as const;
  const source = new ItemSource(
    Array.from({ length: 70 }, (_, i) => i),
    "test",
  );
  const examples = new Examples(session, source, decode);
  const shapes = async (options: object): Promise<unknown[]> => {
    const found: unknown[] = [];
    for await (const [x, y] of examples.batches(options)) {
      assert.deepEqual([x.shape[1], x.dtype, y.dtype], [1, "float32", "int32"]);
      found.push(y.shape);
    }
    return found;
  };
  assert.deepEqual(await shapes({}), [[32], [32], [6]]);
  assert.deepEqual(await shapes({ dropLast: true }), [[32], [32]]);
  assert.deepEqual(await shapes({ batchSize: 69 }), [[69], [1]]);
});

test("images have three channels unless options say otherwise", async () => {
  const { session } = recordedSession();
  const pixels = { data: Uint8Array.of(255, 51, 0, 255), width: 1, height: 1 };
  for (const [options, shape] of [
    [{}, [1, 3, 2, 1]],
    [{ channels: 1 }, [1, 1, 2, 1]],
  ] as const) {
    const images = fromImages(session, host, [[pixels, "b"]], {
      ...{ width: 1, height: 2, classes: ["a", "b"] },
      ...options,
    });
    const [x, y] = await images.load();
    assert.deepEqual([x.shape, y.shape], [shape, [1]]);
  }
});

test("a file is closed where it turns out to be damaged", async () => {
  const { session } = recordedSession();
  let isClosed = false;
  const damaged = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      controller.enqueue(new Uint8Array(8).fill(255));
    },
    cancel: () => void (isClosed = true),
  });
  const blob = Object.assign(new Blob(), { stream: () => damaged });
  await assert.rejects(stateOf(session, host).safeLoad(blob), /a header of at most/);
  assert.equal(isClosed, true);
});

test("a model is trained in training mode, and measured outside of it", async () => {
  const { session } = recordedSession();
  const modes: boolean[] = [];
  const model = {
    forward(x: Tensor) {
      modes.push(session.training);
      return x;
    },
  };
  const training = new PythonObject(session, session.call("$fit.Training", []));
  const steps = new StepCapture(session, training, model, { loss: "mse" }, (handle) => handle);
  const batch = [tensorOf(session, [1, 2]), tensorOf(session, [3, 4])];
  for (const mode of [false, true]) {
    session.training = mode;
    await steps.ofBatch(mode ? "evaluation" : "step", 1, batch);
    assert.equal(session.training, mode);
  }
  assert.deepEqual(modes, [true, false, false]);
});

test("the progress of a model in one file is that of the file", async () => {
  const described = { inputs: [], outputs: [], ops: {}, parameters: [] };
  const { session, sent } = recordedSession((question: Question) => {
    if (question.kind === "meta") return described;
    return question.kind === "value" ? [] : undefined; // names of other files
  });
  const seen: Progress[] = [];
  await loadModel(session, host, new Uint8Array(9), { onProgress: (progress) => seen.push(progress) });
  assert.deepEqual(seen, [{ stage: "download", fraction: 1, loaded: 9, total: 9 }]);
  const names = sent.flatMap((operation) => ("name" in operation ? operation.name : []));
  assert.deepEqual(names.slice(0, 2), ["$onnx.Loading", "$onnx.piece"]);
});
