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

/** Texts of whole records: no line's end in quotes ends a text. */
export async function* wholeRecords(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = "";
  let scanned = 0;
  let isQuoted = false; // at `scanned`
  for await (const text of texts) {
    rest += text;
    let end = -1;
    for (; scanned < rest.length; scanned++) {
      const code = rest.charCodeAt(scanned);
      if (code === 34) isQuoted = !isQuoted;
      else if (code === 10 && !isQuoted) end = scanned;
    }
    if (end < 0) continue;
    yield rest.slice(0, end + 1);
    rest = rest.slice(end + 1);
    scanned = rest.length;
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
  for await (const text of wholeRecords(decoded(file))) {
    const parsed = parse(text, found);
    if (parsed.problem !== undefined) {
      const { position, message } = parsed.problem;
      throw new ArgumentError(`${what}: record ${number + position + 1}: ${message}`);
    }
    if (parsed.records.length > 0) found = parsed.delimiter;
    for (const fields of parsed.records) yield { number: ++number, fields };
  }
}
