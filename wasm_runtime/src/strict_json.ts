/**
 * JSON of files that somebody else wrote: the text has one meaning, for every reader in every language.
 *
 * Names are unique in an object, text is UTF-8, and numbers are integers unless `floats` allows others.
 * `polygrad/runtime/strict_json.py` refuses the same texts.
 */

import { MAX_DEPTH } from "./limits";

/** A string with the colon after a name, a bracket, or a number. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[[\]{}]|-?\d[\d.eE+-]*/g;

/** The value of a text. Throws SyntaxError, TypeError, RangeError. */
export function parseJson(bytes: Uint8Array, floats = false): unknown {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  const value: unknown = JSON.parse(text);
  const open: (Set<string> | undefined)[] = [];
  for (const [token, colon] of text.matchAll(TOKENS)) {
    const names = open.at(-1);
    if (token === "{" || token === "[") {
      if (open.push(token === "{" ? new Set() : undefined) > MAX_DEPTH) {
        throw new RangeError(`more than ${MAX_DEPTH} lists and objects in each other`);
      }
    } else if (token === "}" || token === "]") open.pop();
    else if (!token.startsWith('"')) checkNumber(token, floats);
    else if (colon !== undefined && names !== undefined) {
      const name = JSON.parse(token.slice(0, -colon.length)) as string;
      if (names.has(name)) throw new TypeError(`the name ${name.slice(0, 80)} occurs twice in an object`);
      names.add(name);
    }
  }
  return value;
}

function checkNumber(token: string, floats: boolean): void {
  const isFraction = /[.eE]/.test(token);
  if (isFraction && !floats) throw new TypeError(`expected an integer, got ${token.slice(0, 40)}`);
  const fits = isFraction ? Number.isFinite(Number(token)) : !floats || Number.isSafeInteger(Number(token));
  if (!fits) throw new TypeError(`expected a number in range, got ${token.slice(0, 40)}`);
}
