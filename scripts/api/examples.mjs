/** Examples of the manifest in JavaScript. Lines that end in `// value` are checked by tests/javascript/test_examples.py. */

import { argumentName, methodName } from "./types.mjs";

/** Operations that take integers alone: the data that they are called on keeps its dtype, int32 in Python. */
const OF_INTEGERS = new Set(
  "bincount bitwise_and bitwise_not bitwise_or bitwise_xor gcd index_add is_class lcm lshift one_hot rshift scatter_add".split(
    " ",
  ),
);

/** Examples of what JavaScript has in another form: context managers, closures, text. */
const BY_HAND = {
  "Tensor.code": ['(await new Tensor([1, 2]).add(1).code()).includes("1 kernel"); // true'],
  "Tensor.detect_anomaly": [
    "const found = Tensor.detectAnomaly(async () => new Tensor([1, -1]).log().tolist());",
    'await found.catch((error) => error.name); // "AnomalyError"',
  ],
  "Tensor.no_grad": withoutGradients("noGrad"),
  "Tensor.inference_mode": withoutGradients("inferenceMode"),
  "Tensor.enable_grad": [
    "const x = new Tensor([1], { requiresGrad: true });",
    "const y = Tensor.noGrad(() => Tensor.enableGrad(() => x.mul(2)));",
    "(await y.ready()).requiresGrad; // true",
  ],
  "nn.optim.Optimizer": [
    "const w = new Tensor([1], { requiresGrad: true });",
    "const optimizer = new nn.optim.SGD([w], { lr: 0.1 });",
    "optimizer.lr = 0.5;",
    "await optimizer.lr.item(); // 0.5",
  ],
  "nn.optim.Optimizer.schedule_step": [
    "const w = new Tensor([1], { requiresGrad: true });",
    "const optimizer = new nn.optim.SGD([w], { lr: 0.5 });",
    "w.mul(1).sum().backward();",
    "const updates = await Tensor.train(() => optimizer.scheduleStep());",
    "await Promise.all(updates.map((t) => t.tolist())); // [[0.5]]",
  ],
  "nn.optim.LBFGS": lbfgs("await w.tolist(); // ≈ [3, 3]"),
  "nn.optim.LBFGS.step": lbfgs("(await w.sub(3).square().sum().item()) < 1e-6; // true"),
};

function withoutGradients(name) {
  return [
    "const x = new Tensor([1], { requiresGrad: true });",
    `const y = Tensor.${name}(() => x.mul(2));`,
    "await x.mul(y).sum().backward().item(); // 2",
    "await x.grad.tolist(); // [2]",
  ];
}

function lbfgs(end) {
  return [
    "const w = new Tensor([1, -2], { requiresGrad: true });",
    'const optimizer = new nn.optim.LBFGS([w], { lineSearchFn: "strong_wolfe" });',
    "await Tensor.train(() =>",
    "  optimizer.stepWith(() => {",
    "    optimizer.zeroGrad();",
    "    return w.sub(3).square().sum().backward();",
    "  }),",
    ");",
    end,
  ];
}

const NUMBERS = { nan: "NaN", inf: "Infinity", "-inf": "-Infinity" };

function valueText(value) {
  if (Object.is(value, -0)) return "-0";
  return typeof value === "string" ? (NUMBERS[value] ?? JSON.stringify(value)) : JSON.stringify(value);
}

function optionsText(options, keyOf = argumentName) {
  const entries = Object.entries(options).map(([name, x]) => `${keyOf(name)}: ${text(x)}`);
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

/** `nn.Parameter(tensor)`: a tensor that requires a gradient. */
function parameterText([tensor]) {
  if (tensor.new !== "Tensor") return `${text(tensor)}.requiresGrad_()`;
  return tensorText({ ...tensor, options: { ...tensor.options, requires_grad: { value: true } } }, true);
}

/** What is read of a tensor. */
function readText({ read, each, of }) {
  const code = text(of, false);
  if (each) return `await Promise.all(${code}.map((t) => t.${methodName(read)}()))`;
  if (["tolist", "item"].includes(read)) return `await ${code}.${read}()`;
  return `(await ${code}.ready()).${methodName(read)}`;
}

/** An expression. `keepsIntegers`: whether the tensor that it begins with has integers; tensors among arguments do. */
function text(node, keepsIntegers = true) {
  if ("value" in node) return valueText(node.value);
  if ("float" in node) return valueText(node.float);
  if ("name" in node) return argumentName(node.name);
  if ("list" in node) return `[${node.list.map((x) => text(x)).join(", ")}]`;
  if ("object" in node) return optionsText(node.object, (key) => key)[0] ?? "{}";
  if ("read" in node) return readText(node);
  if ("get" in node) return `${text(node.on, keepsIntegers)}.${methodName(node.get)}`;
  if (node.new === "Tensor") return tensorText(node, keepsIntegers);
  if (node.new === "nn.Parameter") return parameterText(node.args);
  const args = [...node.args.map((x) => text(x)), ...optionsText(node.options)].join(", ");
  if (node.new !== undefined) return `new ${node.new}(${args})`;
  const isPlace = typeof node.on === "string";
  const on = isPlace ? node.on : text(node.on, keepsIntegers || OF_INTEGERS.has(node.call));
  return `${on}.${methodName(node.call)}(${args})`;
}

const pattern = (names) =>
  Array.isArray(names) ? `[${names.map(pattern).join(", ")}]` : argumentName(names);

function resultText(result) {
  if (Array.isArray(result)) return `[${result.map(resultText).join(", ")}]`;
  return typeof result === "string" ? JSON.stringify(result) : String(result);
}

/** Methods and functions whose results are promises, of what is no tensor. */
const ofPromises = new Set();

const awaited = (node, keepsIntegers) =>
  `${ofPromises.has(node.call) ? "await " : ""}${text(node, keepsIntegers)}`;

/** What a step shows. */
function shownText({ show, result, about }) {
  return `${awaited(show, false)}; // ${about ? "≈ " : ""}${resultText(result)}`;
}

function blockLines(head, body, tail) {
  return [`${head} {`, ...body.flatMap(stepLines).map((line) => `  ${line}`), tail];
}

/** The lines of a step. */
function stepLines(step) {
  if (step.show !== undefined) return [shownText(step)];
  if (step.let !== undefined) return [`const ${pattern(step.let)} = ${awaited(step.be, true)};`];
  if (step.do !== undefined) return [`${text(step.do)};`];
  if (step.append !== undefined) return [`${argumentName(step.to)}.push(${text(step.append)});`];
  if (step.within !== undefined) {
    return blockLines(`${text(step.within).replace(/\)$/, "")}() =>`, step.body, "});");
  }
  if (step.times !== undefined) return blockLines(`for (let i = 0; i < ${step.times}; i++)`, step.body, "}");
  return blockLines(`for (const ${pattern(step.each)} of ${text(step.of)})`, step.body, "}");
}

/** Add its example to the doc of each entry of a manifest that has one. */
export function addExamples({ classes, functions }) {
  const callables = [...classes.flatMap(({ methods }) => methods), ...functions];
  for (const { name, result } of callables) {
    if (["state_dict", "value"].includes(result.kind)) ofPromises.add(name);
  }
  for (const entry of [...classes, ...classes.flatMap((c) => c.properties), ...callables]) {
    const lines = BY_HAND[entry.id] ?? entry.example?.flatMap(stepLines);
    if (lines === undefined) continue;
    entry.doc = `${entry.doc}\n\n\`\`\`js\n${lines.join("\n")}\n\`\`\``.trimStart();
  }
}
