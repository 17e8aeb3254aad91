/** `nn.data.fromCSV`: the rows of a CSV file as examples. */

import { piecesOf } from "../../source";
import { pack, type Packed } from "../data";
import { ArgumentError } from "../generated/errors";
import { checkOptions, type OptionNames } from "../options";
import type { Session } from "../session";
import { openSource, type FileSource, type Host } from "../sources";
import { recordsOf, type CSVRecord } from "./csv_records";
import { Examples, type PackedPair } from "./examples";
import { packExample, type Example, type ExampleOptions } from "./from_examples";
import { ItemSource } from "./item_source";

/** A file of CSV: as other files, or a stream of its bytes, which can be read once. */
export type CSVSource = FileSource | ReadableStream<Uint8Array>;

export interface CSVOptions extends ExampleOptions {
  /** The columns of the inputs by name; all that are not targets unless given. */
  readonly inputs?: readonly string[];
  /** The columns of the targets by name. */
  readonly targets?: string | readonly string[];
  /** The texts of a column of targets, in the order of their numbers: then targets are int32, one for each row. */
  readonly classes?: readonly string[];
  /** Makes an example of a row's texts by column, instead of `inputs`, `targets` and `classes`. */
  readonly example?: (row: Readonly<Record<string, string>>) => Example;
  /** What is between fields; it is found out unless given. */
  readonly delimiter?: string;
  /** Whether the first record has the names of columns; true unless given. Else they are "0", "1" and so on. */
  readonly header?: boolean;
}

const OPTIONS: OptionNames<CSVOptions> = {
  inputs: true,
  targets: true,
  classes: true,
  example: true,
  delimiter: true,
  header: true,
  dtypes: true,
  shuffleBuffer: true,
};

/** A record, and what becomes of it. */
interface Row {
  readonly record: CSVRecord;
  readonly table: Table;
}

export function fromCSV(session: Session, host: Host, source: CSVSource, options: CSVOptions): Examples {
  checkOptions("fromCSV", options, OPTIONS);
  const { targets, example, classes, delimiter } = options;
  if ((targets === undefined) === (example === undefined)) {
    throw new ArgumentError("fromCSV: expected either targets, or example, a function of a row");
  }
  if (classes !== undefined && typeof targets !== "string") {
    throw new ArgumentError("fromCSV: classes: expected targets of one column, the name of it");
  }
  const { loadCSV } = host;
  if (loadCSV === undefined) throw new ArgumentError("fromCSV: this host has no parser of CSV");
  const isStream = source instanceof ReadableStream;
  let wasRead = false;
  const rows = async function* (): AsyncGenerator<Row> {
    if (isStream && wasRead) {
      throw new ArgumentError(
        "fromCSV: expected a file that can be read in each epoch, got a stream, which was read before: load() keeps " +
          "its rows",
      );
    }
    wasRead = true;
    const parse = await loadCSV();
    const file = isStream ? { pieces: piecesOf(source) } : await openSource(host, source, "fromCSV", {});
    let table: Table | undefined;
    for await (const record of recordsOf(file, parse, delimiter, "fromCSV")) {
      if (table === undefined) {
        table = new Table(record.fields, options);
        if (options.header ?? true) continue;
      }
      yield { record, table };
    }
  };
  return new Examples(
    session,
    new ItemSource(rows, "fromCSV"),
    ({ record, table }: Row) => table.pack(record),
    options.shuffleBuffer,
  );
}

/** The columns of a file. */
class Table {
  readonly #names: readonly string[];
  readonly #inputs: readonly number[];
  readonly #targets: readonly number[];
  readonly #options: CSVOptions;

  /** Throws ArgumentError for names of columns that are not there. */
  constructor(first: readonly string[], options: CSVOptions) {
    const { inputs, targets = [], header = true } = options;
    this.#options = options;
    this.#names = header ? first : first.map((_, i) => String(i));
    const find = (what: string, names: readonly string[]): number[] =>
      names.map((name) => {
        const index = this.#names.indexOf(name);
        if (index >= 0) return index;
        throw new ArgumentError(
          `fromCSV: ${what}: expected columns among ${this.#names.join(", ")}, got ${name}`,
        );
      });
    this.#targets = find("targets", typeof targets === "string" ? [targets] : targets);
    const others = this.#names.filter((_, i) => !this.#targets.includes(i));
    this.#inputs = find("inputs", inputs ?? others);
  }

  /** The example of a record. Throws ArgumentError, which says where. */
  pack(record: CSVRecord): PackedPair {
    const { fields, number } = record;
    const count = this.#names.length;
    if (fields.length !== count) {
      throw new ArgumentError(`fromCSV: record ${number}: expected ${count} fields, got ${fields.length}`);
    }
    const { example, classes, dtypes = [undefined, undefined] } = this.#options;
    if (example !== undefined) {
      const row = Object.fromEntries(fields.map((text, i) => [this.#names[i] ?? "", text]));
      return packExample(example(row), dtypes, "fromCSV: example");
    }
    const numbers = (columns: readonly number[]): number[] => columns.map((i) => this.#number(record, i));
    const input = packExample([numbers(this.#inputs), 0], dtypes, "fromCSV")[0];
    if (classes !== undefined) return [input, this.#class(record, classes)];
    return [input, packExample([0, numbers(this.#targets)], dtypes, "fromCSV")[1]];
  }

  #number({ fields, number }: CSVRecord, column: number): number {
    const text = (fields[column] ?? "").trim();
    const value = Number(text);
    if (text !== "" && (!Number.isNaN(value) || text.toLowerCase() === "nan")) return value;
    throw new ArgumentError(
      `fromCSV: record ${number}: ${this.#names[column] ?? ""}: expected a number, got ${JSON.stringify(text)}`,
    );
  }

  #class({ fields, number }: CSVRecord, classes: readonly string[]): Packed {
    const [column = 0] = this.#targets;
    const text = fields[column] ?? "";
    const index = classes.indexOf(text);
    if (index >= 0) return pack(index, "int32");
    throw new ArgumentError(
      `fromCSV: record ${number}: ${this.#names[column] ?? ""}: expected one of ${classes.join(", ")}, got ` +
        JSON.stringify(text),
    );
  }
}
