/** What is known of results without Python; tests/javascript/test_shapes.py compares it with Python. */

import assert from "node:assert/strict";
import { test } from "node:test";

import type { DType } from "../src/api/dtypes";
import { Handle, type Owner } from "../src/api/handle";
import { attributeAssigned, constructed, known } from "../src/api/known";
import { infer, inferMany, inferParts } from "../src/api/shapes/infer";
import { Slice } from "../src/api/slice";

const owner = { adopt: () => undefined } as unknown as Owner;

/** A tensor of which this is known. */
const t = (shape: number[], dtype: DType = "float32"): Handle =>
  Object.assign(new Handle(owner, 1), { [known]: { shape, dtype, device: "WASM" } });

type Call = readonly [name: string, args: readonly unknown[], options?: Readonly<Record<string, unknown>>];

const knownShape = ([name, args, options]: Call): unknown =>
  infer(name.startsWith("$") ? name : `Tensor.${name}`, [args, options], "WASM")?.shape;

const x = t([2, 3, 4]);

test("shapes of results follow from shapes and arguments", () => {
  const cases: [Call, readonly number[] | undefined][] = [
    [["sum", [x]], []],
    [
      ["sum", [x, 1]],
      [2, 4],
    ],
    [
      ["sum", [x, -1, false]],
      [2, 3],
    ],
    [
      ["sum", [x, [0, 2], true]],
      [1, 3, 1],
    ],
    [
      ["sum", [x], { axis: 1, keepdim: true }],
      [2, 1, 4],
    ],
    [["sum", [x, 3]], undefined],
    [["sum", [x, 1, 1]], undefined],
    [
      ["add", [t([2, 1]), t([3])]],
      [2, 3],
    ],
    [["add", [t([2, 3]), t([2])]], undefined],
    [
      ["add", [x, 1]],
      [2, 3, 4],
    ],
    [["squeeze", [t([1, 2, 1])]], [2]],
    [
      ["squeeze", [t([1, 2, 1]), 0]],
      [2, 1],
    ],
    [
      ["squeeze", [t([1, 2, 1]), 1]],
      [1, 2, 1],
    ],
    [
      ["squeeze", [t([1, 2, 1]), -1]],
      [1, 2],
    ],
    [
      ["unsqueeze", [x, -1]],
      [2, 3, 4, 1],
    ],
    [["unsqueeze", [x, 4]], undefined],
    [
      ["reshape", [x, 4, -1]],
      [4, 6],
    ],
    [["reshape", [x, [5, -1]]], undefined],
    [
      ["expand", [t([2, 1]), 4, -1, 5]],
      [4, 2, 5],
    ],
    [
      ["expand", [t([3]), -1, 3]],
      [1, 3],
    ],
    [["expand", [t([2, 3]), 4, 3]], undefined],
    [
      ["permute", [x, 2, 0, -2]],
      [4, 2, 3],
    ],
    [["permute", [x, 0, 0, 1]], undefined],
    [
      ["transpose", [x, 0, -1]],
      [4, 3, 2],
    ],
    [
      ["transpose", [x]],
      [3, 2, 4],
    ],
    [
      ["flatten", [x, 1]],
      [2, 12],
    ],
    [
      ["flatten", [x, 0, 1]],
      [6, 4],
    ],
    [
      ["repeat", [t([2, 3]), 4, 1, 2]],
      [4, 2, 6],
    ],
    [
      ["pad", [t([2, 3]), [null, [1, 2]]]],
      [2, 6],
    ],
    [
      ["narrow", [x, 1, 0, 2]],
      [2, 2, 4],
    ],
    [
      ["select", [x, -2, 0]],
      [2, 4],
    ],
    [
      ["cat", [t([2, 3]), t([2, 1])], { dim: -1 }],
      [2, 4],
    ],
    [["cat", [t([2, 3]), t([3, 1])], { dim: -1 }], undefined],
    [
      ["stack", [t([2, 3]), t([2, 3])], { dim: 1 }],
      [2, 2, 3],
    ],
    [
      ["matmul", [t([5, 1, 2, 3]), t([6, 3, 4])]],
      [5, 6, 2, 4],
    ],
    [["matmul", [t([3]), t([3, 4])]], [4]],
    [["matmul", [t([2, 3]), t([3])]], [2]],
    [["matmul", [t([2, 3]), t([2, 3])]], undefined],
    [
      ["conv2d", [t([2, 4, 9, 8]), t([6, 2, 3, 2])], { groups: 2, stride: [2, 3], padding: 1 }],
      [2, 6, 5, 3],
    ],
    [
      ["conv2d", [t([2, 4, 9, 8]), t([6, 4, 3, 2])], { dilation: [4, 1] }],
      [2, 6, 1, 7],
    ],
    [
      ["max_pool2d", [t([4, 9, 8])]],
      [4, 4, 4],
    ],
    [
      ["max_pool2d", [t([4, 9, 8]), 3, 1, 1, 1]],
      [4, 9, 8],
    ],
    [["arange", [9, 2, -2]], [4]],
    [["arange", [3, 1]], [0]],
    [
      ["eye", [3], { m: 4 }],
      [3, 4],
    ],
    [
      ["zeros", [[2, 3]]],
      [2, 3],
    ],
    [
      ["one_hot", [t([2], "int32"), 5]],
      [2, 5],
    ],
  ];
  for (const [call, shape] of cases) assert.deepEqual(knownShape(call), shape, JSON.stringify(call));
});

test("indices leave the sizes that Python's leave", () => {
  const y = t([4, 5, 6]);
  const cases: [unknown[], number[] | undefined][] = [
    [[0], [5, 6]],
    [[-4, 2], [6]],
    [[4], undefined],
    [
      [null, new Slice(1, 3, null)],
      [1, 2, 5, 6],
    ],
    [[new Slice(null, null, -2)], [2, 5, 6]],
    [[new Slice(-1, 0, -2)], [2, 5, 6]],
    [[new Slice(3, 1, null)], [0, 5, 6]],
    [[[0, 2, 1]], [3, 5, 6]],
    [
      [[[0], [2]], new Slice(0, 1, null)],
      [2, 1, 1, 6],
    ],
    [[0, [1]], undefined],
    [[[true, false, true, true]], undefined],
    [[0, 0, 0, 0], undefined],
  ];
  for (const [indices, shape] of cases) {
    assert.deepEqual(knownShape(["$index", [y, indices]]), shape, JSON.stringify(indices));
  }
});

test("dtypes of results are those that operands are converted to", () => {
  const dtype = (name: string, ...args: unknown[]): unknown =>
    infer(`Tensor.${name}`, [args, {}], "WASM")?.dtype;
  const [int8, half, bool] = [t([2], "int8"), t([2], "float16"), t([2], "bool")];
  const cases: [unknown, DType | undefined][] = [
    [dtype("add", int8, half), "float16"],
    [dtype("add", half, t([2], "bfloat16")), "float32"],
    [dtype("add", half, t([2], "float64")), "float64"],
    [dtype("add", int8, 2), "int8"],
    [dtype("add", int8, 2.5), undefined],
    [dtype("add", bool, 1), undefined],
    [dtype("div", int8, 2), undefined],
    [dtype("lt", int8, 2), "bool"],
    [dtype("argmax", half), "int32"],
    [dtype("mean", int8), undefined],
    [dtype("max", int8), "int8"],
    [dtype("exp", half), "float16"],
    [dtype("half", int8), "float16"],
    [dtype("mse_loss", half, t([2])), "float32"],
    [dtype("mse_loss", t([2]), half), "float32"],
    [dtype("mse_loss", half, half), "float16"],
    [dtype("where", bool, half, int8), "float16"],
    [dtype("where", bool, half, 1), "float16"],
    [dtype("where", bool, 1, half), "float16"],
  ];
  for (const [i, [found, expected]] of cases.entries()) assert.equal(found, expected, `case ${i}`);
});

test("the parts of a tensor are as many as its shape says", () => {
  const parts = (name: string, ...args: unknown[]): unknown =>
    inferParts(`Tensor.${name}`, [[x, ...args], {}], [2, 3, 4])?.map(({ shape }) => shape);
  const [three, one] = [
    [2, 3, 3],
    [2, 3, 1],
  ];
  assert.deepEqual(parts("split", 3, -1), [three, one]);
  assert.deepEqual(parts("split", [3, 1], 2), [three, one]);
  assert.deepEqual(parts("split", [3, 2], 2), undefined);
  assert.deepEqual(parts("chunk", 3, 2), Array(2).fill([2, 3, 2]));
  assert.deepEqual(parts("unbind", 1), Array(3).fill([2, 4]));
  assert.deepEqual(
    inferMany("Tensor.topk", [[x, 2], {}]).map((part) => [part?.shape, part?.dtype]),
    [
      [[2, 3, 2], "float32"],
      [[2, 3, 2], "int32"],
    ],
  );
});

test("results of layers follow from the arguments of their constructors", () => {
  const layer = (...made: unknown[]): Handle =>
    Object.assign(new Handle(owner, 1), { [constructed]: [made, {}] });
  const called = (name: string, ...args: unknown[]): unknown => {
    const found = infer(`nn.${name}.__call__`, [args, {}], "WASM");
    return [found?.shape, found?.dtype];
  };
  const image = t([2, 4, 8, 7]);
  const unknown = [undefined, undefined];
  assert.deepEqual(called("Linear", layer(3, 4), t([5, 2, 3])), [[5, 2, 4], "float32"]);
  assert.deepEqual(called("Linear", layer(3, 4), t([5, 2])), [undefined, "float32"]);
  assert.deepEqual(called("Linear", layer(3, 4, true, "float16"), t([2, 3])), [[2, 4], undefined]);
  assert.deepEqual(called("Embedding", layer(9, 4), t([2, 3], "int32")), [[2, 3, 4], "float32"]);
  assert.deepEqual(called("LayerNorm", layer(3), t([2, 3])), [[2, 3], "float32"]);
  assert.deepEqual(called("Conv2d", layer(4, 6, [3, 2], 2, 1), image), [[2, 6, 4, 4], "float32"]);
  assert.deepEqual(called("Conv2d", layer(5, 6, 3), image), [undefined, "float32"]);
  assert.deepEqual(called("Conv2d", layer(4, 6, 3), t([4, 4, 7])), [undefined, "float32"]); // one image
  const changed = layer(3, 4);
  attributeAssigned(changed);
  assert.deepEqual(called("Linear", changed, t([2, 3])), unknown);
});

test("an option that no rule has looked at leaves a result unknown", () => {
  assert.equal(infer("Tensor.sum", [[x], { dim: 1 }], "WASM"), undefined);
  assert.equal(infer("Tensor.nothing", [[x], {}], "WASM"), undefined);
  assert.equal(infer("Tensor.zeros", [[2], {}], "WASM")?.device, "WASM");
  assert.equal(infer("Tensor.zeros", [[2], { device: "WEBGPU" }], "WASM")?.device, undefined);
});
