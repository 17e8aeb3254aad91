/**
 * What the editor knows of polygrad's API, and what a name in a program means.
 *
 * Types are not inferred: a name means what it was last made by (`x = nn.Linear(2, 3)`), and else a Tensor. The build
 * writes the scopes, see `scripts/api/completions.mjs`.
 */

import type { Language } from "./messages";

export type Kind = "class" | "function" | "property" | "namespace";

/** A name of the API, its signature, and the first sentence of its documentation. */
export type Entry = readonly [name: string, kind: Kind, signature: string, doc: string];

/** Scopes by path: `nn.optim`; `nn.Linear#`, the members of its objects. A text is the path of an equal scope. */
type Scopes = Readonly<Record<string, readonly Entry[] | string>>;

/** What programs here have besides. */
const SURROUNDINGS: Readonly<Record<Language, readonly Entry[]>> = {
  javascript: [
    [
      "create",
      "function",
      "(options?) → Promise<Polygrad>",
      "Starts polygrad; here it gives the session that is open.",
    ],
    ["plot", "function", "(value: number) → void", "Adds a point to the curve below the output."],
  ],
  python: [
    ["plot", "function", "(value)", "Adds a point to the curve below the output; `from js import plot`."],
  ],
};

const TENSOR = "Tensor#";

export class ApiScopes {
  readonly #scopes: Scopes;
  readonly #language: Language;

  constructor(scopes: Scopes, language: Language) {
    this.#scopes = scopes;
    this.#language = language;
  }

  /** The members of a scope; undefined for a path that is none. */
  #members(path: string): readonly Entry[] | undefined {
    const found = Object.hasOwn(this.#scopes, path) ? this.#scopes[path] : undefined;
    if (typeof found === "string") return this.#members(found);
    return path === "" ? [...(found ?? []), ...SURROUNDINGS[this.#language]] : found;
  }

  #entry(path: string): Entry | undefined {
    const at = path.lastIndexOf(".");
    return this.#members(path.slice(0, Math.max(at, 0)))?.find(([name]) => name === path.slice(at + 1));
  }

  /** What can follow `owner` and a dot in `program`; with an empty `owner`, what a program imports. */
  after(owner: string, program: string): readonly Entry[] {
    if (owner === "") return this.#members("") ?? [];
    const path = this.#pathOf(owner, program);
    if (path === undefined) return [];
    return this.#members(path) ?? this.#members(TENSOR) ?? [];
  }

  /** The entry that `name` after `owner` means. */
  find(owner: string, name: string, program: string): Entry | undefined {
    return this.after(owner, program).find(([other]) => other === name);
  }

  /** The scope that an expression means; undefined for what is not polygrad's. */
  #pathOf(owner: string, program: string): string | undefined {
    const path = owner.replace(/^polygrad\./, "");
    if (this.#members(path) || this.#entry(path)) return path;
    if (path.includes(".") || !/^\w+$/.test(path)) return TENSOR;
    const made = this.#madeBy(path, program);
    if (made !== undefined) return made;
    return this.#isForeign(path, program) ? undefined : TENSOR;
  }

  /** The scope of what the variable was last assigned, where that is a call of the API. */
  #madeBy(variable: string, program: string): string | undefined {
    const assigned = new RegExp(`\\b${variable}\\s*=\\s*(?:await\\s+)?(?:new\\s+)?([\\w.]+)\\(`, "g");
    const callee = [...program.matchAll(assigned)].at(-1)?.[1]?.replace(/^polygrad\./, "");
    if (callee === undefined) return undefined;
    if (callee === "create") return "";
    const called = this.#entry(callee);
    if (!called) return undefined;
    if (called[1] === "class" && this.#members(`${callee}#`)) return `${callee}#`;
    const result = /→ (\w+)/.exec(called[2])?.[1];
    return result !== undefined && this.#members(`${result}#`) ? `${result}#` : undefined;
  }

  /** Whether a name belongs to the language or to another library. */
  #isForeign(name: string, program: string): boolean {
    if (this.#language === "javascript") return Object.hasOwn(globalThis, name);
    return new RegExp(`\\bimport\\b[^\\n]*\\b${name}\\b`).test(program);
  }
}

const loaded = new Map<Language, Promise<ApiScopes>>();

async function fetchScopes(language: Language): Promise<ApiScopes> {
  const response = await fetch(`completions/${language}.json`);
  if (!response.ok) throw new Error(`expected completions/${language}.json, got status ${response.status}`);
  return new ApiScopes((await response.json()) as Scopes, language);
}

/** The API of a language. It is fetched once. */
export function apiOf(language: Language): Promise<ApiScopes> {
  const known = loaded.get(language);
  if (known) return known;
  const fetched = fetchScopes(language);
  loaded.set(language, fetched);
  fetched.catch(() => loaded.delete(language)); // the next one tries again
  return fetched;
}
