/**
 * What the playground's editor knows of the API, by scope: `nn.optim` is a namespace or a class with its statics,
 * `nn.Linear#` are the members of its objects, the empty scope holds what a program imports.
 *
 * Python's comes from the manifest; JavaScript's from its own types, as an editor with TypeScript reads them.
 */

import { dirname } from "node:path";

import ts from "typescript";

/** An entry: a name, "class", "function", "property" or "namespace", its signature, and the first sentence of its doc. */
const entry = (name, kind, signature, doc) => [name, kind, signature, firstSentence(doc)];

/** The first sentence, in one line; a code example does not belong to it. */
function firstSentence(doc = "") {
  const [paragraph] = doc.trim().split(/\n\s*\n|\n {4}/);
  const line = paragraph.replace(/\s+/g, " ");
  return /^.*?[.;:](?=\s|$)(?<!e\.g\.|i\.e\.)/.exec(line)?.[0].replace(/[;:]$/, ".") ?? line;
}

// Python

const RESULTS = { tensor: "Tensor", tensors: "tuple of Tensors", self: "itself", tree: "what it returns" };

function pythonValue(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string"
    ? `"${value}"`
    : Array.isArray(value)
      ? `(${value.join(", ")})`
      : `${value}`;
}

function pythonParameters(parameters = []) {
  const parts = [];
  let keywordsOnly = false;
  for (const { name, kind, ...rest } of parameters) {
    if (kind === "rest") parts.push(`*${name}`);
    else {
      if (kind === "keyword" && !keywordsOnly && !parts.some((part) => part.startsWith("*"))) parts.push("*");
      keywordsOnly ||= kind === "keyword";
      parts.push("default" in rest ? `${name}=${pythonValue(rest.default)}` : name);
    }
  }
  return `(${parts.join(", ")})`;
}

function pythonResult(result) {
  const text =
    result.kind === "value" ? result.type : (RESULTS[result.kind] ?? result.class?.split(".").at(-1));
  return text === undefined ? "" : ` → ${text}${result.optional ? " | None" : ""}`;
}

const isPublic = ({ name }) => !name.startsWith("_");

/** The members of a class, and of those that it derives from. */
function pythonMembers(entryOfClass, classes) {
  const base = classes.get(entryOfClass.base);
  const inherited = base ? pythonMembers(base, classes) : [];
  const properties = [...entryOfClass.attributes, ...(entryOfClass.properties ?? [])].map((p) => ({
    isStatic: Boolean(p.static),
    entry: entry(p.name, "property", pythonResult(p.result).replace(" → ", ": "), p.doc),
  }));
  const methods = entryOfClass.methods.map((m) => ({
    isStatic: m.kind !== "instance",
    entry: entry(m.name, "function", pythonParameters(m.parameters) + pythonResult(m.result), m.doc),
  }));
  const own = [...properties, ...methods].filter((member) => isPublic({ name: member.entry[0] }));
  const names = new Set(own.map((member) => member.entry[0]));
  return [...own, ...inherited.filter((member) => !names.has(member.entry[0]))];
}

/** The scopes of `import polygrad`, from the manifest as Python wrote it. */
export function pythonScopes({ classes, functions }) {
  const scopes = { "": [] };
  const byId = new Map(classes.map((c) => [c.id, c]));
  const add = (id, made) => {
    const scope = id.split(".").slice(0, -1).join(".");
    const parts = scope.split(".");
    for (let i = 0; scope && i < parts.length; i++) {
      const [parent, path] = [parts.slice(0, i).join("."), parts.slice(0, i + 1).join(".")];
      if (scopes[path]) continue;
      scopes[path] = [];
      scopes[parent].push(entry(parts[i], "namespace", "", ""));
    }
    scopes[scope].push(made);
  };
  for (const c of classes) {
    add(c.id, entry(c.name, "class", pythonParameters(c.constructor?.parameters), c.doc));
    const members = pythonMembers(c, byId);
    scopes[`${c.id}#`] = members.filter(({ isStatic }) => !isStatic).map((m) => m.entry);
    const statics = members.filter(({ isStatic }) => isStatic).map((m) => m.entry);
    if (statics.length > 0) scopes[c.id] = statics;
  }
  const makers = new Set(functions.filter(({ result }) => byId.has(result.class)).map(({ id }) => id));
  for (const f of functions) {
    const kind = makers.has(f.id) ? "class" : "function";
    add(f.id, entry(f.name, kind, pythonParameters(f.parameters) + pythonResult(f.result), f.doc));
    if (makers.has(f.id)) scopes[`${f.id}#`] = scopes[`${f.result.class}#`];
  }
  return scopes;
}

// JavaScript

const MAX_SIGNATURE = 240;

class TypeScopes {
  scopes = {};
  #checker;
  #paths = new Map();

  constructor(checker) {
    this.#checker = checker;
  }

  #typeOf(symbol) {
    return this.#checker.getTypeOfSymbol(symbol);
  }

  #docOf(symbol) {
    return ts.displayPartsToString(symbol.getDocumentationComment(this.#checker));
  }

  /** A type as a reader wants it: of options their names, of tensors no dtypes. */
  #text(type) {
    const plain = this.#checker.getNonNullableType(type);
    const properties = plain.getProperties();
    const isOptions = plain.symbol?.name.endsWith("Options") && properties.length > 0;
    if (isOptions) return `{ ${properties.map(({ name }) => name).join(", ")} }`;
    return this.#checker
      .typeToString(type, undefined, ts.TypeFormatFlags.NoTruncation)
      .replace(/\bTensor<(?:[^<>]|<[^<>]*>)*>/g, "Tensor")
      .replace(/ \| undefined$/, "");
  }

  #parameter(symbol) {
    const { valueDeclaration: declared } = symbol;
    const type = this.#typeOf(symbol);
    if (declared?.dotDotDotToken) {
      const [tuple] = type.isUnion()
        ? [...type.types].sort((a, b) => this.#arity(a) - this.#arity(b))
        : [type];
      if (this.#checker.isTupleType(tuple)) return this.#tuple(tuple);
      return `...${symbol.name}: ${this.#text(type)}`;
    }
    return `${symbol.name}${declared?.questionToken || declared?.initializer ? "?" : ""}: ${this.#text(type)}`;
  }

  #arity = (tuple) => this.#checker.getTypeArguments(tuple).length;

  #tuple(tuple) {
    const { labeledElementDeclarations: labels = [], elementFlags } = tuple.target;
    return this.#checker
      .getTypeArguments(tuple)
      .map((type, i) => {
        const optional = elementFlags[i] & ts.ElementFlags.Optional ? "?" : "";
        const rest = elementFlags[i] & ts.ElementFlags.Variable ? "..." : "";
        return `${rest}${labels[i]?.name.getText() ?? `x${i}`}${optional}: ${this.#text(type)}${rest && "[]"}`;
      })
      .join(", ");
  }

  #signature(signature, isClass) {
    const parameters = signature.getParameters().map((p) => this.#parameter(p));
    const result = isClass ? "" : ` → ${this.#text(signature.getReturnType())}`;
    const text = `(${parameters.join(", ")})${result}`;
    return text.length > MAX_SIGNATURE ? `${text.slice(0, MAX_SIGNATURE - 1)}…` : text;
  }

  /** Add the members of `type` as the scope `path`. Of a type that has a scope already, its path is noted. */
  add(path, type) {
    if (this.scopes[path]) return;
    const known = this.#paths.get(type);
    if (known !== undefined) this.scopes[path] = known;
    if (known !== undefined) return;
    this.#paths.set(type, path);
    const entries = (this.scopes[path] = []);
    const isObject = path.endsWith("#");
    for (const symbol of type.getProperties()) {
      const { name } = symbol;
      if (/^(__|prototype$|constructor$)/.test(name) || !/^[A-Za-z]/.test(name) || this.#isHidden(symbol))
        continue;
      entries.push(this.#member(symbol, isObject ? undefined : path ? `${path}.${name}` : name));
    }
  }

  #isHidden(symbol) {
    const internal = symbol.getJsDocTags(this.#checker).some((tag) => tag.name === "internal");
    const flags = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
    const { valueDeclaration: declared } = symbol;
    return internal || Boolean(declared && ts.getCombinedModifierFlags(declared) & flags);
  }

  /** The entry of a member; `path`: of a member of a namespace, whose own members are scopes too. */
  #member(symbol, path) {
    const [type, doc] = [this.#typeOf(symbol), this.#docOf(symbol)];
    const { name } = symbol;
    const [made] = type.getConstructSignatures();
    if (made && path) {
      const instance = made.getReturnType();
      this.add(`${path}#`, instance);
      if (path === "Tensor") this.add(path, type);
      return entry(name, "class", this.#signature(made, true), doc || this.#docOf(instance.symbol));
    }
    const call = type.getCallSignatures().at(-1); // of several forms the most general one
    if (call) return entry(name, "function", this.#signature(call, false), doc);
    if (path && (type.flags & ts.TypeFlags.Object || type.isIntersection())) {
      this.add(path, type);
      return entry(name, "namespace", "", doc);
    }
    return entry(name, "property", `: ${this.#text(type)}`, doc);
  }
}

/** What programs get from the functions of the API: classes that none of its namespaces has. */
const RESULT_CLASSES = ["CompiledStep", "CapturedFunction"];

/** The scopes of what `create` gives. `file` exports the interface `Polygrad` and the classes of its results. */
export function javascriptScopes(file, config) {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(config, ts.sys.readFile).config,
    ts.sys,
    dirname(config),
  );
  const program = ts.createProgram([file], { ...options, noEmit: true });
  const checker = program.getTypeChecker();
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)));
  const typeNamed = (name) => {
    const symbol = exported.find((x) => x.name === name);
    if (symbol === undefined) throw new Error(`${file}: expected it to export ${name}`);
    const declared = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    return checker.getDeclaredTypeOfSymbol(declared);
  };
  const found = new TypeScopes(checker);
  found.add("", typeNamed("Polygrad"));
  for (const name of RESULT_CLASSES) found.add(`${name}#`, typeNamed(name));
  return found.scopes;
}
