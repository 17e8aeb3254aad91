/** Values of parameters and state, written to where they stay while they arrive. */

import { ProgramError } from "./errors";
import { checkedBlocks, type Part } from "./parts";
import { PieceReader } from "./pieces";
import type { Program, Size } from "./program";
import { headerLength, parseHeader, PREFIX, type Place } from "./safetensors";

/** What a value has to be. */
export interface ValueSpec {
  readonly dtype: string;
  readonly shape: readonly Size[];
}

const WORD = 4; // bytes: a GPU's writes are multiples

/** The parameters and states of Programs, by name, without those that are zero at first. */
export function valueSpecs(programs: Iterable<Program>, zeros: readonly string[]): Map<string, ValueSpec> {
  const specs = new Map<string, ValueSpec>();
  const zero = new Set(zeros);
  for (const { buffers } of programs) {
    for (const { role, name, dtype, shape } of buffers) {
      if ((role === "param" || role === "state") && !zero.has(name)) {
        specs.set(name, { dtype, shape: shape ?? [] });
      }
    }
  }
  return specs;
}

/** Throws ProgramError unless the values are those of a model, by name, dtype and shape. */
export function checkValues(
  expected: ReadonlyMap<string, ValueSpec>,
  got: ReadonlyMap<string, ValueSpec>,
): void {
  const described = (x: ValueSpec | undefined): string =>
    x === undefined ? "nothing" : `${x.dtype} [${x.shape.join(", ")}]`;
  for (const name of new Set([...expected.keys(), ...got.keys()])) {
    const [wanted, found] = [described(expected.get(name)), described(got.get(name))];
    if (wanted !== found) {
      throw new ProgramError(
        `values: ${name}: expected ${wanted}, got ${found}: use those that were saved with this model`,
      );
    }
  }
}

/**
 * Read the rest of a file, its values. `write` gets each piece of a value with its byte offset, after its SHA-256 was
 * checked. Rejects with ProgramError for a damaged file, and for values that are not of the model.
 */
export async function readValues(
  file: PieceReader,
  values: Part,
  expected: ReadonlyMap<string, ValueSpec>,
  write: (name: string, piece: Uint8Array, offset: number) => void,
): Promise<void> {
  const reader = new PieceReader(checkedBlocks(file, values, "values"));
  const places = values.bytes > 0 ? await readPlaces(reader, values.bytes) : [];
  checkValues(expected, new Map(places.map((place) => [place.name, place])));
  for (const { name, start, end } of places) {
    let offset = 0;
    for await (const piece of reader.stream(end - start, WORD)) {
      write(name, piece, offset);
      offset += piece.length;
    }
  }
  await reader.end();
  await file.end();
}

/** The places of all values in their order. Rejects with ProgramError for gaps, and for values beyond the end. */
async function readPlaces(reader: PieceReader, length: number): Promise<Place[]> {
  const prefix = await reader.take(PREFIX);
  const size = prefix.length < PREFIX ? Infinity : headerLength(prefix);
  if (PREFIX + size > length) {
    throw new ProgramError(`safetensors: expected a header of ${size} bytes, got values of ${length}`);
  }
  const places = parseHeader(await reader.take(size), ProgramError, false).sort((a, b) => a.start - b.start);
  let end = 0;
  for (const place of places) {
    if (place.start !== end) {
      throw new ProgramError(
        `safetensors: ${place.name}: expected its start at byte ${end}, got ${place.start}`,
      );
    }
    end = place.end;
  }
  if (PREFIX + size + end !== length) {
    throw new ProgramError(`safetensors: expected ${length - PREFIX - size} bytes of values, got ${end}`);
  }
  return places;
}
