/** Examples of the manifest in JavaScript. */

import { argumentName, methodName } from "./types.mjs";

/** Operations that take integers alone: the data that they are called on keeps its dtype, int32 in Python. */
const OF_INTEGERS = new Set(
  "bincount bitwise_and bitwise_not bitwise_or bitwise_xor gcd index_add is_class lcm one_hot scatter_add".split(
    " ",
  ),
);

const NUMBERS = { nan: "NaN", inf: "Infinity", "-inf": "-Infinity" };

function valueText(value) {
  if (Object.is(value, -0)) return "-0";
  return typeof value === "string" ? (NUMBERS[value] ?? JSON.stringify(value)) : JSON.stringify(value);
}

function optionsText(options) {
  const entries = Object.entries(options).map(([name, x]) => `${argumentName(name)}: ${text(x)}`);
  return entries.length === 0 ? [] : [`{ ${entries.join(", ")} }`];
}

function isInteger(data) {
  if (data.list !== undefined) return data.list.length > 0 && data.list.every(isInteger);
  return Number.isInteger(data.value);
}

/** `Tensor(data)`. Integers become int32 in Python, and float32 here unless the dtype is given. */
function tensorText({ args, options }, keepsIntegers) {
  const [data] = args;
  const isInt = keepsIntegers && data !== undefined && isInteger(data) && options.dtype === undefined;
  const given = isInt ? { ...options, dtype: { value: "int32" } } : options;
  return `new Tensor(${[...args.map((x) => text(x)), ...optionsText(given)].join(", ")})`;
}

/** An expression. `keepsIntegers`: whether the tensor that it begins with has integers; tensors among arguments do. */
function text(node, keepsIntegers = true) {
  if ("value" in node) return valueText(node.value);
  if ("float" in node) return valueText(node.float);
  if ("list" in node) return `[${node.list.map((x) => text(x)).join(", ")}]`;
  if ("get" in node) return `${text(node.on, keepsIntegers)}.${methodName(node.get)}`;
  if (node.new === "Tensor") return tensorText(node, keepsIntegers);
  const args = [...node.args.map((x) => text(x)), ...optionsText(node.options)].join(", ");
  if (node.new !== undefined) return `new ${node.new}(${args})`;
  const on = node.on === "Tensor" ? "Tensor" : text(node.on, keepsIntegers || OF_INTEGERS.has(node.call));
  return `${on}.${methodName(node.call)}(${args})`;
}

/** The code of an example, which gives its result when it is awaited. */
export function exampleText({ read, each, of }) {
  const code = text(of, false);
  if (each) return `await Promise.all(${code}.map((t) => t.${read}()))`;
  return read === "shape" ? `(await ${code}.ready()).shape` : `await ${code}.${read}()`;
}

function resultText(result) {
  if (Array.isArray(result)) return `[${result.map(resultText).join(", ")}]`;
  return String(result);
}

/** Add its example to the doc of each entry that has one. */
export function addExamples(x) {
  if (Array.isArray(x)) x.forEach(addExamples);
  else if (typeof x === "object" && x !== null) {
    if (x.example !== undefined) {
      const code = `${exampleText(x.example)}; // ${resultText(x.example.result)}`;
      x.doc = `${x.doc}\n\n\`\`\`js\n${code}\n\`\`\``.trimStart();
    }
    for (const [name, value] of Object.entries(x)) if (name !== "example") addExamples(value);
  }
}
