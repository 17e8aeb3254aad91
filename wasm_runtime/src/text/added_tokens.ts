/**
 * Finds added tokens in text, as `polygrad/hf/added_tokens.py` does. Those that are not normalized are found first, in
 * the original text: the leftmost match, and of those the longest. The others are then found in what remains, normalized.
 */

/** An added token of a tokenizer.json. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly single_word: boolean;
  readonly lstrip: boolean;
  readonly rstrip: boolean;
  readonly normalized: boolean;
  readonly special: boolean;
}

/** A part of a text: an added token's `id`, or normalized text. `first`: whether it begins the whole text. */
export interface Section {
  readonly text: string;
  readonly id?: number;
  readonly first: boolean;
}

const SPACE = "[\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const SPACES_AT_END = new RegExp(`${SPACE}*$`);
const SPACES_AT_START = new RegExp(`^${SPACE}*`);
const WORD = /[\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\p{Join_Control}\u24b6-\u24e9\u{1f130}-\u{1f189}]/u;

export class AddedTokens {
  readonly #plain: Finder;
  readonly #normalized: Finder;
  readonly #normalize: (text: string) => string;

  constructor(tokens: readonly AddedToken[], normalize: (text: string) => string) {
    this.#normalize = normalize;
    const named = (isNormalized: boolean): Map<string, AddedToken> =>
      new Map(
        tokens
          .filter(({ normalized }) => normalized === isNormalized)
          .map((token) => [isNormalized ? normalize(token.content) : token.content, token]),
      );
    this.#plain = new Finder(named(false));
    this.#normalized = new Finder(named(true));
  }

  /** The parts of `text` in order, none of which is empty. */
  *sections(text: string): Generator<Section> {
    for (const { start, end, id } of this.#plain.find(text)) {
      if (id !== undefined) {
        yield { text: text.slice(start, end), id, first: false };
        continue;
      }
      const normal = this.#normalize(text.slice(start, end));
      for (const part of this.#normalized.find(normal)) {
        const inner = normal.slice(part.start, part.end);
        if (inner === "") continue;
        const first = part.id === undefined && start === 0 && part.start === 0;
        yield { text: inner, first, ...(part.id !== undefined && { id: part.id }) };
      }
    }
  }
}

interface Part {
  readonly start: number;
  readonly end: number;
  readonly id?: number;
}

class Finder {
  readonly #tokens: ReadonlyMap<string, AddedToken>;
  readonly #pattern: RegExp | undefined;

  constructor(tokens: ReadonlyMap<string, AddedToken>) {
    this.#tokens = tokens;
    const longestFirst = [...tokens.keys()]
      .filter((content) => content !== "")
      .sort((a, b) => Array.from(b).length - Array.from(a).length);
    const escaped = longestFirst.map((content) => content.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
    this.#pattern = escaped.length > 0 ? new RegExp(escaped.join("|"), "g") : undefined;
  }

  /** The parts of `text`, and the id of each that is a token. */
  *find(text: string): Generator<Part> {
    let position = 0;
    for (const match of this.#pattern === undefined ? [] : text.matchAll(this.#pattern)) {
      const token = this.#tokens.get(match[0]);
      let [start, end] = [match.index, match.index + match[0].length];
      if (token === undefined || (token.single_word && isInWord(text, start, end))) continue;
      if (token.lstrip) {
        const spaces = SPACES_AT_END.exec(text.slice(position, start))?.[0].length ?? 0;
        start = Math.max(start - spaces, position);
      }
      if (token.rstrip) end += SPACES_AT_START.exec(text.slice(end))?.[0].length ?? 0;
      if (position < start) yield { start: position, end: start };
      yield { start: Math.max(start, position), end, id: token.id };
      position = end;
    }
    if (position < text.length) yield { start: position, end: text.length };
  }
}

/** Whether a word goes on before or after a part of a text. */
function isInWord(text: string, start: number, end: number): boolean {
  const before = Array.from(text.slice(Math.max(start - 2, 0), start)).at(-1) ?? "";
  const after = Array.from(text.slice(end, end + 2)).at(0) ?? "";
  return WORD.test(before) || WORD.test(after);
}
