/** Layers and optimizers, from the manifest's classes. */

import { bodyOf, method } from "./tensor.mjs";
import { comment, methodName, signature, typeOf } from "./types.mjs";

function tensorAttribute(entry, constructor, names) {
  if (entry.present_if === undefined) return { name: entry.name };
  const position = constructor.findIndex(({ name }) => name === entry.present_if);
  const parameter = constructor[position];
  names.argument(parameter.name);
  return { name: entry.name, flag: { name: parameter.name, position, default: parameter.default } };
}

/** Attributes that may be assigned a number. */
const LEARNING_RATES = ["nn.optim.Optimizer.lr", "nn.optim.OptimizerGroup.lr"];

/** A getter (and setter) for an attribute. */
function attribute(entry) {
  const name = methodName(entry.name);
  const key = JSON.stringify(entry.name);
  const kind = entry.result.kind;
  if (kind === "tensor") {
    const optional = entry.present_if !== undefined;
    const type = optional ? "Tensor | null" : "Tensor";
    const assigned = LEARNING_RATES.includes(entry.id) ? "Tensor | number" : type;
    const doc = optional
      ? `/** null without \`${methodName(entry.present_if)}\`. */\n  `
      : entry.id === LEARNING_RATES[0]
        ? "/** The learning rate, of one element. What is assigned is written to it, also for captured steps. */\n  "
        : comment(entry.doc ?? "", "  ").trimStart();
    const body = optional ? "optionalTensor" : "tensor";
    return `  ${doc}get ${name}(): ${type} {\n    return PythonObject.${body}(this, ${key});\n  }\n\n  set ${name}(value: ${assigned}) {\n    PythonObject.assign(this, ${key}, value);\n  }\n`;
  }
  if (kind === "tensors") {
    return `  /** A promise: how many there are is known when it has been made. */\n  get ${name}(): Promise<Tensor[]> {\n    return PythonObject.tensors(this, ${key});\n  }\n`;
  }
  const type = typeOf(entry.result.type, entry.id);
  return `  /** In a worker known after \`ready()\`. */\n  get ${name}(): ${type} {\n    return PythonObject.value(this, ${key}) as ${type};\n  }\n`;
}

function classText(entry, inherited, overridden, names) {
  const constructor = entry.constructor?.parameters;
  const attributes = entry.attributes.filter(({ result }) => result.kind !== "host");
  const all = [...inherited, ...attributes];
  const shape = {
    id: entry.id,
    tensors: all
      .filter(({ result }) => result.kind === "tensor")
      .map((a) => tensorAttribute(a, constructor ?? [], names)),
    values: all.filter(({ result }) => result.kind === "value").map(({ name }) => name),
    ...((entry.open_state || all.some(({ result }) => result.kind === "tensors")) && { lists: true }),
  };
  const properties = entry.properties.filter(({ result }) => result.kind !== "host");
  shape.values.push(...properties.filter(({ result }) => result.kind === "value").map((p) => p.name));
  const attributeTexts = [...attributes, ...properties].map((a) => attribute(a));
  const methods = entry.methods
    .filter(({ result }) => result.kind !== "host" && result.kind !== "object")
    .map((m) => method(m, names, { owner: entry.name, overrides: overridden.has(m.name) }));
  const base = entry.base === undefined ? "PythonObject" : entry.base.split(".").at(-1);
  const args =
    constructor === undefined ? undefined : signature(constructor, `${entry.name}Options`, names, entry.id);
  return `
${args?.options ?? ""}
${args === undefined ? "" : `export type ${entry.name}Arguments = ${args.tuple};\n`}
${comment(entry.doc)}export class ${entry.name} extends ${base} {
  /** @internal */
  static override readonly shape: Shape = ${JSON.stringify(shape)};

${[...attributeTexts, ...methods.map(({ text }) => text)].join("\n")}
}
addPythonNames(${entry.name});
${methods.map(({ options }) => options).join("\n")}
`;
}

/** A function that makes an object: a class of its own, that differs only in how it is made. */
function makerText(entry, names) {
  const base = entry.result.class.split(".").at(-1);
  const { options, tuple } = signature(entry.parameters, `${entry.name}Options`, names, entry.id);
  return `
${options}
export type ${entry.name}Arguments = ${tuple};

${comment(entry.doc)}export class ${entry.name} extends ${base} {
  /** @internal */
  static override readonly shape: Shape = { ...${base}.shape, id: ${JSON.stringify(entry.id)} };
}
`;
}

/** Functions as the members of an object that belongs to a session. */
function functionsText(type, maker, entries, names) {
  const members = entries.map((entry) => {
    const name = methodName(entry.name);
    const optionsName = `${name[0].toUpperCase()}${name.slice(1).replace(/_$/, "")}Options`;
    const { options, list, passed } = signature(entry.parameters, optionsName, names, entry.id);
    const [result, body] = bodyOf(entry, "session", passed);
    const doc = comment(entry.doc, "  ");
    return {
      options,
      type: `${doc}  ${name}(${list}): ${result};`,
      code: `    ${name}(${list}): ${result} {\n      ${body}\n    },`,
    };
  });
  return `
${members.map(({ options }) => options).join("\n")}
export interface ${type} {
${members.map((m) => m.type).join("\n")}
}

/** @internal */
export function ${maker}(session: Session): ${type} {
  return {
${members.map((m) => m.code).join("\n")}
  };
}
`;
}

export function nnFile(manifest, names) {
  const classes = manifest.classes.filter(({ id }) => id.startsWith("nn."));
  const byId = new Map(classes.map((c) => [c.id, c]));
  const inheritedBy = ({ base }) =>
    base === undefined ? [] : [...inheritedBy(byId.get(base)), ...byId.get(base).attributes];
  const methodsAbove = ({ base }) =>
    base === undefined
      ? []
      : [...methodsAbove(byId.get(base)), ...byId.get(base).methods.map(({ name }) => name)];
  // A class comes after its base.
  const depth = ({ base }) => (base === undefined ? 0 : 1 + depth(byId.get(base)));
  const ordered = [...classes].sort((a, b) => depth(a) - depth(b));
  const makers = manifest.functions.filter((f) => f.id.startsWith("nn.") && f.result.kind === "object");
  const made = [...classes.filter((c) => Object.hasOwn(c, "constructor")), ...makers];
  const inside = (prefix) => (id) => id.startsWith(prefix) && !id.slice(prefix.length).includes(".");
  const members = (prefix) => [
    ...made
      .filter(({ id }) => inside(prefix)(id))
      .map(
        ({ name, doc }) => `${comment(doc, "  ")}  readonly ${name}: Constructor<${name}Arguments, ${name}>;`,
      ),
    ...manifest.aliases
      .filter(({ id }) => inside(prefix)(id))
      .map(({ id, of }) => {
        const [name, own] = [id, of].map((text) => text.split(".").at(-1));
        return `  /** \`${own}\`, by another name. */\n  readonly ${name}: Constructor<${own}Arguments, ${own}>;`;
      }),
  ];
  const values = (prefix) => [
    ...made.filter(({ id }) => inside(prefix)(id)).map(({ name }) => name),
    ...manifest.aliases
      .filter(({ id }) => inside(prefix)(id))
      .map(({ id, of }) => `${id.split(".").at(-1)}: ${of.split(".").at(-1)}`),
  ];
  const called = (prefix) =>
    manifest.functions.filter(({ id, result }) => id.startsWith(prefix) && result.kind !== "object");
  return `
import { addPythonNames, callNested, callStateDict, callTensor, callTensorList, callTensors, callValue, callVoid } from "../calls";
import type { DTypeName } from "../dtypes";
import { owner } from "../handle";
import type { StateDict } from "../models";
import { PythonObject, type Constructor, type Shape } from "../object";
import type { Session } from "../session";
import { callWithFunction } from "../traced";
import type { Tensor } from "./tensor";

${ordered.map((entry) => classText(entry, inheritedBy(entry), new Set(methodsAbove(entry)), names)).join("\n")}
${makers.map((entry) => makerText(entry, names)).join("\n")}

${functionsText("OptimizerFunctions", "optimizerFunctions", called("nn.optim."), names)}

${functionsText("Initialisation", "initialisation", called("nn.init."), names)}

/** The layers. */
export interface Layers {
${members("nn.").join("\n")}
}

/** The optimizers. */
export interface Optimizers {
${members("nn.optim.").join("\n")}
}

/** @internal */
export const LAYERS = { ${values("nn.").join(", ")} };

/** @internal */
export const OPTIMIZERS = { ${values("nn.optim.").join(", ")} };
`;
}
