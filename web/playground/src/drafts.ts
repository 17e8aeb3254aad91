/** Programs as the visitor left them. The browser keeps them; they are sent nowhere. */

/** A program of a link that was edited: `original` is its text in the link, `example` what that was made of. */
export interface Origin {
  readonly original: string;
  readonly example: string;
}

/** A program that was edited: an example, or one with an origin. */
export interface Draft {
  readonly text: string;
  readonly origin?: Origin;
}

const PREFIX = "polygrad.playground.draft/";
const LAST = "polygrad.playground.last";

function isOrigin(value: unknown): value is Origin {
  const { original, example } = (value ?? {}) as Partial<Record<string, unknown>>;
  return typeof original === "string" && typeof example === "string";
}

/** A draft as it was stored; undefined for what is none. */
function parse(stored: string | null): Draft | undefined {
  if (stored === null) return undefined;
  try {
    const { text, origin } = JSON.parse(stored) as { text?: unknown; origin?: unknown };
    if (typeof text !== "string") return undefined;
    return isOrigin(origin) ? { text, origin } : { text };
  } catch {
    return undefined; // another page of this site wrote it
  }
}

/** The browser's storage; undefined where the visitor or a sandbox forbids it. */
function storage(): Storage | undefined {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}

export function draftOf(file: string): Draft | undefined {
  return parse(storage()?.getItem(PREFIX + file) ?? null);
}

/** Keep a draft. Throws where the browser keeps nothing, or has no room. */
export function keepDraft(file: string, draft: Draft): void {
  const kept = storage();
  if (kept === undefined) throw new Error("expected a browser that stores data for this page");
  kept.setItem(PREFIX + file, JSON.stringify(draft));
}

export function dropDraft(file: string): void {
  storage()?.removeItem(PREFIX + file);
}

/** The programs of links that were edited, by their files. */
export function sharedDrafts(): [file: string, origin: Origin][] {
  const found: [string, Origin][] = [];
  for (const key of Object.keys(storage() ?? {}).sort()) {
    if (!key.startsWith(PREFIX)) continue;
    const file = key.slice(PREFIX.length);
    const origin = draftOf(file)?.origin;
    if (origin) found.push([file, origin]);
  }
  return found;
}

/** The program that was open last. */
export function lastProgram(): string | undefined {
  return storage()?.getItem(LAST) ?? undefined;
}

/** Keep which program is open. A browser without room for it opens another one at the next visit. */
export function keepLastProgram(file: string): void {
  try {
    storage()?.setItem(LAST, file);
  } catch {
    return;
  }
}
