/** The parser of CSV, papaparse, for `nn.data.fromCSV`. This is a bundle of its own in pages, which is loaded at its first use. */

import Papa from "papaparse";

import type { ParsedCSV } from "../../wasm_runtime/src/api/datasets/csv_records";

/** The records of a text, without empty lines. */
export function parseCSV(text: string, delimiter: string | undefined): ParsedCSV {
  const { data, errors, meta } = Papa.parse<string[]>(text, {
    ...(delimiter !== undefined && { delimiter }),
    skipEmptyLines: true,
  });
  const error = errors.find(({ code }) => code !== "UndetectableDelimiter"); // of a single column
  return {
    records: data,
    delimiter: meta.delimiter,
    ...(error && { problem: { position: error.row ?? 0, message: error.message } }),
  };
}
