/** The records of a CSV file as it arrives. The host's parser gets whole records; a record ends at a line's end outside of quotes. */

import type { OpenedFile } from "../../source";
import { ArgumentError } from "../generated/errors";

/** The records of a text, and why it has none. */
export interface ParsedCSV {
  readonly records: readonly (readonly string[])[];
  /** The delimiter that was given or found. */
  readonly delimiter: string;
  /** What is wrong with a record: its position, and why. */
  readonly problem?: { readonly position: number; readonly message: string } | undefined;
}

/** A parser of CSV. Without `delimiter` it finds out. */
export type ParseCSV = (text: string, delimiter: string | undefined) => ParsedCSV;

/** A record, and its number in the file: that of the first is 1. */
export interface CSVRecord {
  readonly number: number;
  readonly fields: readonly string[];
}

/** The most characters of a record: so a quote that is never closed is an error, and the rest of the file is not kept. */
const LONGEST_RECORD = 1 << 24;

/** What can be between fields while that is not known, by papaparse. */
const DELIMITERS = ",\t|;\x1e\x1f";

const [LF, CR, QUOTE] = [10, 13, 34];

/**
 * Where records end in a text that arrives in pieces. Quotes enclose a field that begins with one, and two of them in it
 * stand for one; any other quote is a character of its field.
 */
class RecordEnds {
  readonly #what: string;
  readonly #longest: number;
  #isQuoted = false;
  /** Whether the character before closed a quoted field: then a quote goes on with it. */
  #isClosed = false;
  #last = LF;
  #line = 1;
  #quoteLine = 0;
  #recordLine = 1;
  /** Characters of the record in the pieces before. */
  #length = 0;

  constructor(what: string, longest: number) {
    this.#what = what;
    this.#longest = longest;
  }

  /** How many characters of the next piece end with a whole record. Throws ArgumentError for a record that is too long. */
  scan(text: string, delimiter: string | undefined): number {
    const ends = new Set(Array.from(delimiter ?? DELIMITERS, (x) => x.charCodeAt(0)));
    let start = -this.#length; // of the record
    let end = 0;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === QUOTE) {
        this.#quote(ends);
      } else {
        this.#isClosed = false;
        if (code === LF) {
          this.#line++;
          if (!this.#isQuoted) {
            this.#check(i - start);
            this.#recordLine = this.#line;
            start = end = i + 1;
          }
        }
      }
      this.#last = code;
    }
    this.#length = text.length - start;
    this.#check(this.#length);
    return end;
  }

  #quote(ends: ReadonlySet<number>): void {
    if (this.#isQuoted) {
      this.#isQuoted = false;
      this.#isClosed = true;
      return;
    }
    const isFirst = this.#last === LF || this.#last === CR || ends.has(this.#last);
    if (isFirst) this.#quoteLine = this.#line;
    this.#isQuoted = isFirst || this.#isClosed;
    this.#isClosed = false;
  }

  #check(length: number): void {
    if (length <= this.#longest) return;
    const most = `${this.#longest.toLocaleString("en")} characters`;
    throw new ArgumentError(
      this.#isQuoted
        ? `${this.#what}: line ${this.#quoteLine}: expected the end of a field in quotes within ${most}, got none`
        : `${this.#what}: line ${this.#recordLine}: expected a record of at most ${most}, got a longer one`,
    );
  }
}

/**
 * Texts of whole records: no line's end in quotes ends a text. `delimiter`: gives what is between fields once that is
 * known. Rejects with ArgumentError for a record of more than `longest` characters.
 */
export async function* wholeRecords(
  texts: AsyncIterable<string>,
  delimiter: () => string | undefined,
  what: string,
  longest = LONGEST_RECORD,
): AsyncGenerator<string> {
  const records = new RecordEnds(what, longest);
  let rest = "";
  for await (const text of texts) {
    const end = records.scan(text, delimiter());
    if (end === 0) {
      rest += text;
      continue;
    }
    yield rest + text.slice(0, end);
    rest = text.slice(end);
  }
  if (rest !== "") yield rest;
}

async function* decoded({ pieces }: OpenedFile): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: false }); // it drops a byte order mark
  for await (const piece of pieces) yield decoder.decode(piece, { stream: true });
  yield decoder.decode();
}

/** The records of a file, without empty lines. Rejects with ArgumentError for a damaged one. */
export async function* recordsOf(
  file: OpenedFile,
  parse: ParseCSV,
  delimiter: string | undefined,
  what: string,
): AsyncGenerator<CSVRecord> {
  let number = 0;
  let found = delimiter;
  for await (const text of wholeRecords(decoded(file), () => found, what)) {
    const parsed = parse(text, found);
    if (parsed.problem !== undefined) {
      const { position, message } = parsed.problem;
      throw new ArgumentError(`${what}: record ${number + position + 1}: ${message}`);
    }
    if (parsed.records.length > 0) found = parsed.delimiter;
    for (const fields of parsed.records) yield { number: ++number, fields };
  }
}
