/** The manifest's types and names in TypeScript. */

const TYPES = {
  None: "null",
  bool: "boolean",
  int: "number",
  float: "number",
  str: "string",
  scalar: "Scalar",
  size: "Size",
  ints: "readonly number[]",
  floats: "readonly number[]",
  sizes: "readonly Size[]",
  pairs: "readonly (readonly [Size, Size] | null)[]",
  dtype: "DTypeName",
  device: "string",
  data: "TensorData",
  operand: "Operand",
  Tensor: "Tensor",
  Tensors: "readonly Tensor[]",
  layers: "readonly Layer[]",
  state_dict: "Readonly<Record<string, Tensor>>",
  strings: "string[]",
  Optimizer: "Optimizer | OptimizerGroup",
  Schedulers: "readonly LRScheduler[]",
  Optimizers: "readonly Optimizer[]",
};

/** A type of the manifest: alternatives joined by ` | `. */
export function typeOf(text, subject) {
  const found = text.split(" | ").map((part) => {
    if (part.startsWith("'")) return JSON.stringify(part.slice(1, -1));
    if (TYPES[part] === undefined)
      throw new Error(`${subject}: expected a type with a TypeScript form, got ${part}`);
    return TYPES[part];
  });
  return [...new Set(found)].join(" | ");
}

/** `label_smoothing` as `labelSmoothing`; a trailing underscore that only avoids a Python keyword goes. */
export function argumentName(name) {
  return methodName(name.replace(/_$/, ""));
}

/** `log_softmax` as `logSoftmax`; a trailing underscore, which says in-place, stays. `__call__` is `forward`. */
export function methodName(name) {
  if (name === "__call__") return "forward";
  return name.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
}

/** `Tensor.log_softmax` as `Tensor.logSoftmax`. */
function callName(id) {
  return id.split(".").map(methodName).join(".");
}

/** Camel-case names and the Python names they stand for, of everything seen; two for one name is an error. */
export class Names {
  #python = new Map();

  argument(name) {
    const own = argumentName(name);
    const known = this.#python.get(own) ?? name;
    if (known !== name)
      throw new Error(`argument ${own}: expected one Python name, got ${known} and ${name}`);
    this.#python.set(own, name);
    return own;
  }

  /** Those that differ. */
  entries() {
    return [...this.#python].filter(([own, python]) => own !== python).sort();
  }
}

/** A docstring as a TSDoc comment, indented by `indent`. */
export function comment(doc, indent = "") {
  if (doc === "") return "";
  const lines = doc.replaceAll("*/", "*\\/").split("\n");
  if (lines.length === 1 && lines[0].length + indent.length < 100) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}

/** How many optional arguments may be given by position; the others by name. */
const MOST_POSITIONAL = 2;

function isShape(parameter) {
  const parts = parameter.type.split(" | ");
  return parts.includes("sizes") && parts.includes("size");
}

/** A callable's parameter list, and the arguments it passes on: by name where there is one way to call it. */
function listOf(alternatives, options) {
  if (alternatives.length > 1) {
    const tuple = alternatives.map((parts) => `[${parts.join(", ")}]`).join(" | ");
    return { options, tuple, list: `...args: ${tuple}`, passed: "...args" };
  }
  const [parts] = alternatives;
  const passed = parts.map((part) => part.replace(/^(\.{3})?(\w+)\??:.*$/s, "$1$2")).join(", ");
  return { options, tuple: `[${parts.join(", ")}]`, list: parts.join(", "), passed };
}

/** The optional arguments that may also be given by position: the first ones, and no booleans in company. */
function positionalOptions(parameters) {
  const optional = parameters.filter((p) => p.kind === "positional" && "default" in p);
  if (parameters.length === 1) return optional;
  const end = optional.findIndex((p) => typeof p.default === "boolean");
  return optional.slice(0, Math.min(end < 0 ? MOST_POSITIONAL : end, MOST_POSITIONAL));
}

/**
 * The arguments of a callable: `list`, its parameters; `passed`, what it passes on; `tuple`, the type of all of them;
 * and `options`, an interface called `name` or nothing. Required arguments and the first optional ones go by position,
 * all optional ones by name in an object at the end.
 */
export function signature(parameters, name, names, subject) {
  const positional = parameters.filter(({ kind }) => kind === "positional");
  const rest = parameters.find(({ kind }) => kind === "rest");
  const optional = parameters.filter((p) => "default" in p);
  const type = (p) => typeOf(p.type, `${subject}(${p.name})`);
  const label = (p) => argumentName(p.name);
  const options =
    optional.length === 0
      ? ""
      : `/** Arguments of \`${callName(subject)}\` by name. */\nexport interface ${name} {\n${optional
          .map((p) => `  ${defaultOf(p)}readonly ${names.argument(p.name)}?: ${type(p)} | undefined;`)
          .join("\n")}\n}\n`;
  const end = options === "" ? [] : [`options?: ${name}`];
  const shape = rest && (isShape(rest) ? rest : positional.find(isShape));
  if (shape) {
    const kinds = type(shape).split(" | ");
    const sizes = `...${label(shape)}: (${kinds.filter((t) => !t.startsWith("readonly")).join(" | ")})[]`;
    const given = [[`${label(shape)}: ${kinds.find((t) => t.startsWith("readonly"))}`, ...end], [sizes]];
    return listOf(options ? [...given, [sizes, `options: ${name}`]] : given, options);
  }
  const required = positional.filter((p) => !("default" in p)).map((p) => `${label(p)}: ${type(p)}`);
  if (rest) {
    const many = [...required, `...${rest.name === "args" ? "others" : label(rest)}: (${type(rest)})[]`];
    return listOf(options ? [many, [...many, `options: ${name}`]] : [many], options);
  }
  const more = positionalOptions(parameters).map((p) => `${label(p)}: ${type(p)}`);
  const prefixes = more.map((_, i) => [...required, ...more.slice(0, i + 1), ...end]);
  return listOf([[...required, ...end], ...prefixes], options);
}

function defaultOf(parameter) {
  const value = parameter.default;
  return value === null ? "" : `/** ${JSON.stringify(value)} unless given. */ `;
}
