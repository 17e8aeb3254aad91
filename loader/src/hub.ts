/**
 * Text to tokens, and conversations to text, for Python's `polygrad.hf`: on `@huggingface/tokenizers` and
 * `@huggingface/jinja`. Python sends JSON, which it has checked, and reads plain values. This is a bundle of its own,
 * which is loaded at its first use.
 */

import { Interpreter, Template } from "@huggingface/jinja";
import { SequenceNormalizer, Tokenizer } from "@huggingface/tokenizers";

import { Charsmap } from "./charsmap";

/** The words of a text as tokens. Python handles added tokens and the tokens around a text. */
export class HubTokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #ids: ReadonlyMap<string, number>;
  readonly #unknown: number | undefined;

  /** `source`: a tokenizer as `polygrad/hf/javascript_form.py` writes it, or its JSON. */
  constructor(source: string | object) {
    const parsed: unknown = typeof source === "string" ? JSON.parse(source) : source;
    const data = parsed as { model: { unk_token?: string } };
    this.#tokenizer = new Tokenizer(data, { unk_token: data.model.unk_token });
    const { model } = this.#tokenizer;
    if (model === null) throw new Error("internal: a tokenizer without a model");
    useCharsmaps(this.#tokenizer);
    this.#ids = model.tokens_to_ids;
    this.#unknown = model.unk_token_id;
  }

  normalize(text: string): string {
    return this.#tokenizer.normalizer?.normalize(text) ?? text;
  }

  /** The ids of normalized text. `first`: whether the whole text begins with it. */
  encode(text: string, first: boolean): Int32Array {
    const { pre_tokenizer: split, model } = this.#tokenizer;
    const words = split ? split.pre_tokenize(text, { section_index: first ? 0 : 1 }) : [text];
    const tokens = model?._call(words) ?? [];
    const ids = tokens.map((token) => this.#ids.get(token) ?? this.#unknown);
    return Int32Array.from(ids.filter((id) => id !== undefined));
  }
}

/** Use sentencepiece's tables of replacements instead of the library's approximation. */
function useCharsmaps({ normalizer }: Tokenizer): void {
  if (!(normalizer instanceof SequenceNormalizer)) return;
  const parts = normalizer.normalizers as ({ config: object; normalize(text: string): string } | null)[];
  for (const part of parts) {
    const { type, precompiled_charsmap: table } = (part?.config ?? {}) as Record<string, unknown>;
    if (part === null || type !== "Precompiled") continue;
    const charsmap = new Charsmap(String(table));
    part.normalize = (text) => charsmap.normalize(text);
  }
}

/** Limits of a template, which is a program in a stranger's file. */
const LIMITS = {
  seconds: 10,
  steps: 2_000_000,
  size: 8_000_000,
  all: 64_000_000,
  integer: 100_000,
  element: 16,
};

/** What is left of the limits for the current rendering. */
let budget = { deadline: 0, steps: 0, size: 0 };

/** A value of the interpreter, whose class the library does not export. */
interface RuntimeValue {
  readonly type: string;
  readonly value: unknown;
  readonly builtins: Map<string, RuntimeValue>;
}

/** A node of a template's tree, or a node whose value is known (`made`). */
interface TemplateNode {
  readonly type: string;
  readonly made?: RuntimeValue;
  readonly operator?: { readonly value: string };
  readonly left?: TemplateNode;
  readonly right?: TemplateNode;
  readonly filter?: { readonly type: string; readonly value?: string };
  readonly operand?: TemplateNode;
}

type Evaluate = (this: Interpreter, node: TemplateNode | undefined, scope: unknown) => RuntimeValue;
type EvaluateArguments = (this: Interpreter, ...args: unknown[]) => [RuntimeValue[], unknown];

/** Nodes that make new values; other nodes return existing values. */
const MAKES = new Set([
  ...["ArrayLiteral", "TupleLiteral", "ObjectLiteral", "BinaryExpression"],
  ...["CallExpression", "FilterExpression", "SliceExpression"],
]);

/** The number of characters of a written value. Counting stops beyond the limit. */
function sizeOf(value: unknown): number {
  let size = 0;
  const pending = [value];
  while (pending.length > 0 && size <= LIMITS.size) {
    const part = (pending.pop() as RuntimeValue | undefined)?.value;
    if (typeof part === "string") size += 1 + part.length;
    else if (Array.isArray(part)) {
      size += LIMITS.element * (1 + part.length);
      if (size <= LIMITS.size) for (const inner of part) pending.push(inner);
    } else if (part instanceof Map) {
      size += LIMITS.element * (1 + 2 * part.size);
      for (const [key, inner] of part) {
        size += String(key).length;
        if (size <= LIMITS.size) pending.push(inner);
      }
    } else size += 1;
  }
  return size;
}

function refuse(what: string): never {
  throw new Error(`the template takes too much: ${what}`);
}

/** The characters that Python's `strip` removes. */
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

/** Python's `strip`, `lstrip` and `rstrip`. The library's remove JavaScript's spaces, whatever their argument is. */
function strip(text: string, name: string, characters?: unknown): string {
  const set = typeof characters === "string" ? characters.replace(/[\\\]^-]/g, "\\$&") : SPACE;
  if (set === "") return text;
  const start = name === "rstrip" ? text : text.replace(new RegExp(`^[${set}]+`, "u"), "");
  return name === "lstrip" ? start : start.replace(new RegExp(`(?<![${set}])[${set}]+$`, "u"), "");
}

type MakeFunction = new (call: (args: RuntimeValue[]) => RuntimeValue) => RuntimeValue;

/** Replace the methods of texts by those that strip as Python's do. */
function correctStrip(text: RuntimeValue): void {
  const prototype = Object.getPrototypeOf(text) as object;
  const MakeText = text.constructor as new (value: string) => RuntimeValue;
  const inherited = Object.getOwnPropertyDescriptor(prototype, "builtins");
  if (inherited?.get === undefined) throw new Error("internal: texts of @huggingface/jinja have no builtins");
  Object.defineProperty(prototype, "builtins", {
    get(this: RuntimeValue) {
      const methods = inherited.get?.call(this) as Map<string, RuntimeValue>;
      for (const name of ["strip", "lstrip", "rstrip"]) {
        const MakeCall = methods.get(name)?.constructor as MakeFunction;
        methods.set(
          name,
          new MakeCall(([characters]) => new MakeText(strip(String(this.value), name, characters?.value))),
        );
      }
      return methods;
    },
  });
}

const NUMBER = /^(Integer|Float|Boolean)Value$/;

/** Whether two values are equal in Python. The library compares by identity. */
function isEqual(left: RuntimeValue, right: RuntimeValue): boolean {
  const [a, b] = [left.value, right.value];
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((x, i) => isEqual(x as RuntimeValue, b[i] as RuntimeValue));
  }
  if (a instanceof Map && b instanceof Map && left.type !== "NamespaceValue") {
    return (
      a.size === b.size &&
      [...a].every(([key, x]) => b.has(key) && isEqual(x as RuntimeValue, b.get(key) as RuntimeValue))
    );
  }
  if (NUMBER.test(left.type) && NUMBER.test(right.type)) return Number(a) === Number(b);
  return left.type === right.type && a === b;
}

/** Why Python cannot add two values; undefined if it can. */
function noSum(left: RuntimeValue, right: RuntimeValue): string | undefined {
  const kinds = [left, right].map(({ type }) =>
    /^(Integer|Float|Boolean)Value$/.test(type) ? "number" : type,
  );
  return kinds[0] === kinds[1] ? undefined : `a sum of ${left.type} and ${right.type}`;
}

/**
 * Correct the library's interpreter. It has no bounds, so each step is counted and each new value is measured. It also
 * adds values that Python cannot add, compares objects by identity, and strips other characters.
 */
function boundInterpreter(): void {
  const methods = Interpreter.prototype as unknown as {
    evaluate: Evaluate;
    evaluateArguments: EvaluateArguments;
  };
  const { evaluate, evaluateArguments } = methods;
  let corrected = false;
  const evaluateAsPython: Evaluate = function (node, scope) {
    const operator = node?.type === "BinaryExpression" ? node.operator?.value : undefined;
    if (operator === "+" || operator === "==" || operator === "!=") {
      const left = methods.evaluate.call(this, node?.left, scope);
      const right = methods.evaluate.call(this, node?.right, scope);
      const made = (value: RuntimeValue): TemplateNode => ({ type: "Made", made: value });
      if (operator === "+") {
        const why = noSum(left, right);
        if (why !== undefined) throw new Error(why);
        return evaluate.call(this, { ...node, left: made(left), right: made(right) } as TemplateNode, scope);
      }
      // The library compares a value with itself to make a Boolean.
      const value = isEqual(left, right) === (operator === "==") ? "==" : "!=";
      const same = { ...node, operator: { value }, left: made(left), right: made(left) } as TemplateNode;
      return evaluate.call(this, same, scope);
    }
    if (
      node?.type === "FilterExpression" &&
      node.filter?.type === "Identifier" &&
      node.filter.value === "trim"
    ) {
      const text = methods.evaluate.call(this, node.operand, scope);
      if (typeof text.value !== "string") throw new Error(`trim of ${text.type}`);
      return new (text.constructor as new (value: string) => RuntimeValue)(strip(text.value, "strip"));
    }
    return evaluate.call(this, node, scope);
  };
  methods.evaluate = function (node, scope) {
    if (node?.made !== undefined) return node.made;
    if (--budget.steps < 0) refuse(`more than ${LIMITS.steps} steps`);
    if (Date.now() > budget.deadline) refuse(`more than ${LIMITS.seconds} seconds`);
    const made = evaluateAsPython.call(this, node, scope);
    if (!corrected && made.type === "StringValue") {
      corrected = true;
      correctStrip(made);
    }
    if (node && MAKES.has(node.type)) {
      const size = sizeOf(made);
      budget.size -= size;
      if (size > LIMITS.size) refuse(`a value of more than ${LIMITS.size} characters`);
      if (budget.size < 0) refuse(`values of more than ${LIMITS.all} characters`);
    }
    return made;
  };
  methods.evaluateArguments = function (...args) {
    const evaluated = evaluateArguments.apply(this, args);
    for (const { value } of evaluated[0]) {
      if (typeof value === "number" && Math.abs(value) > LIMITS.integer) {
        refuse(`an argument above ${LIMITS.integer}`);
      }
    }
    return evaluated;
  };
}

boundInterpreter();

/** The text that a template makes of `variables`, which are JSON. Throws an Error for a template that fails. */
export function renderTemplate(source: string, variables: string): string {
  budget = { deadline: Date.now() + 1000 * LIMITS.seconds, steps: LIMITS.steps, size: LIMITS.all };
  return new Template(source).render(JSON.parse(variables) as Record<string, unknown>);
}
