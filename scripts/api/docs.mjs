/** Docstrings as JavaScript says them: its names, its constants, its way to pass arguments by name. */

import { argumentName, methodName } from "./types.mjs";

/** Functions that Python has as context managers take what runs inside of them. */
const OF_CONTEXTS = {
  "Tensor.detect_anomaly":
    "Run `run`; the first NaN in a result, or in a gradient, is an AnomalyError that names the operation.\n\n" +
    "Every operation is computed at once and looked at, so it is slow. A function that is captured inside is\n" +
    "looked at after each of its runs.",
  "Tensor.no_grad":
    "Run `run` without gradients: what it computes is cut from them, as by `detach`. It has `requiresGrad: false`,\n" +
    "and keeps no graph.",
};
OF_CONTEXTS["Tensor.inference_mode"] = `${OF_CONTEXTS["Tensor.no_grad"]} The same as \`noGrad\`.`;

const VALUES = { None: "null", True: "true", False: "false", inf: "Infinity" };

/** Words of Python, and what JavaScript says. Applied in this order, outside of quoted strings. */
const WORDS = [
  [/\bRaises\b/g, "Throws"],
  [/\braise(s?)\b/g, "throw$1"],
  [/\bKeywords:/g, "Options:"],
  [/\b(None|True|False|inf)\b/g, (word) => VALUES[word]],
  [/\bOverflowError_/g, "OverflowError"],
  [/; self\./g, "; this tensor."],
  [/; self when\b/g, "; this tensor when"],
  [/\bself\b/g, "this"],
  [/\b([Aa]) Python integer\b/g, (_, a) => (a === "A" ? "An integer" : "an integer")],
  [/\bPython (number|integer|float)/g, "$1"],
  [/\ba tuple\b/g, "an array"],
  [/\btuple(s?)\b/g, "array$1"],
  [/\ba dict\b/g, "an object"],
  [/\bdict(s?)\b/g, "object$1"],
  [/\bint\b/g, "integer"],
  [/\bints\b/g, "integers"],
  [/\b(\w+) \/\/ (\w+)/g, "floor($1 / $2)"],
  [/ @ /g, " · "],
  [/\((\w+),\)/g, "($1)"],
];

/** Applied inside of quoted strings too: the keys of an object. */
const KEYS = [
  /\{"(\w+)": (.*?)\}/gs,
  (_, name, rest) => `{ ${name}: ${rest.replace(/"(\w+)": /g, "$1: ")} }`,
];

/** A word that is a Python name, unless it is part of a path or of quoted text. */
const NAME = /(?<![\w/'"])[a-z]\w*_\w*(?![\w/'"])(?!\.\w)/g;

/** Code in a line of an example, with arguments by name in an object, and `new` before classes. */
function example(line, classes) {
  const made = line.replace(/(?<![\w.])([A-Z]\w+)\(/g, (call, name) =>
    classes.has(name) ? `new ${call}` : call,
  );
  const declared = made.replace(/^(\s*)(\w+) = /, "$1const $2 = ");
  const renamed = declared.replace(NAME, methodName);
  return `${renamed.replace(/\b(\w+)=([\w.]+)\)/g, "{ $1: $2 })")};`;
}

export class Docs {
  #names = new Map();
  #classes;

  constructor(manifest) {
    this.#classes = new Set(manifest.classes.map(({ name }) => name));
    const remember = (x) => {
      if (Array.isArray(x)) x.forEach(remember);
      else if (typeof x === "object" && x !== null) {
        if (typeof x.name === "string") this.#names.set(x.name, methodName(x.name));
        Object.values(x).forEach(remember);
        for (const p of x.parameters ?? []) this.#names.set(p.name, argumentName(p.name));
      }
    };
    remember([manifest.classes, manifest.functions]);
  }

  /** The doc of `id`. */
  translate(doc, id) {
    if (OF_CONTEXTS[id] !== undefined) return OF_CONTEXTS[id];
    return doc
      .split("\n")
      .map((line) => (/^ {4}.*[=(]/.test(line) && /\)$/.test(line) ? example(line, this.#classes) : line))
      .join("\n")
      .replace(...KEYS)
      .replace(/\b([a-z]\w*)=(None|True|False|-?[\d.]+\d|-?\d)(?=[`,) ])/g, "$1: $2")
      .split(/("[^"\n]*"|'[\w-]+')/)
      .map((part, i) => (i % 2 === 1 ? part : this.#words(part)))
      .join("");
  }

  #words(text) {
    const words = WORDS.reduce((out, [from, to]) => out.replace(from, to), text);
    return words.replace(NAME, (name) => this.#names.get(name) ?? name);
  }
}

/** Every doc of a manifest, translated in place. */
export function translateDocs(manifest) {
  const docs = new Docs(manifest);
  const visit = (x) => {
    if (Array.isArray(x)) x.forEach(visit);
    else if (typeof x === "object" && x !== null) {
      if (typeof x.doc === "string") x.doc = docs.translate(x.doc, x.id);
      Object.values(x).forEach(visit);
    }
  };
  visit(manifest);
}
