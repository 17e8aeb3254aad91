/**
 * The start of an exported file, up to its values: one Program (`program.ts`), or a bundle of several Programs that share
 * memory, with other files beside them. `polygrad/runtime/bundle.py` describes the format of bundles.
 */

import { ProgramError } from "./errors";
import { hasMagic, isPart, PREFIX, readHeader, takeParts, type Part } from "./parts";
import type { PieceReader } from "./pieces";
import { readProgram, readProgramLater, type Program } from "./program";
import { parseJson } from "./strict_json";

const MAGIC = "PGRB";
const VERSION = 2;
const FIELDS = ["files", "kind", "programs", "settings", "values", "zeros"];
const FORMAT = { what: "bundle", magic: MAGIC, version: VERSION };

/** The kind of a file that is one Program. */
export const STEP = "an exported step";

/** The function that loads each kind of file. */
const LOADERS: Readonly<Record<string, string>> = {
  [STEP]: "load",
  "text-generation": "loadLanguageModel",
  "feature-extraction": "loadTextEncoder",
  "text-classification": "loadTextClassifier",
};

/** An exported file without its values. `values`: what there is to know of them. `zeros`: the values that are zero at first. */
export interface Head {
  readonly kind: string;
  readonly programs: ReadonlyMap<string, Program>;
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly zeros: readonly string[];
  readonly values: Part;
}

type Section = Part & { readonly name: string };

type Header = Pick<Head, "kind" | "zeros" | "values"> & {
  readonly settings: Part;
  readonly programs: readonly Section[];
  readonly files: readonly Section[];
};

/** The start of a file of a kind. Rejects with ProgramError for a damaged file, and for one of another kind. */
export async function readHead(reader: PieceReader, kind: string): Promise<Head> {
  const head = await readAnyHead(reader);
  if (head.kind === kind) return head;
  const loader = Object.hasOwn(LOADERS, head.kind) ? LOADERS[head.kind] : undefined;
  throw new ProgramError(
    `${LOADERS[kind] ?? "load"}: expected ${kind}, got a file for ${head.kind}: ` +
      (loader === undefined ? "use a newer polygrad" : `use ${loader}`),
  );
}

/** The start of a file. Rejects with ProgramError for a damaged one. */
export async function readAnyHead(reader: PieceReader): Promise<Head> {
  const prefix = await reader.take(PREFIX);
  return hasMagic(prefix, MAGIC) ? readBundle(prefix, reader) : readStep(prefix, reader);
}

async function readStep(prefix: Uint8Array, reader: PieceReader): Promise<Head> {
  const { program, values } = await readProgramLater(prefix, reader);
  const programs = new Map([[STEP, program]]);
  return { kind: STEP, programs, files: new Map(), settings: {}, zeros: [], values };
}

async function readBundle(prefix: Uint8Array, reader: PieceReader): Promise<Head> {
  const { kind, zeros, values, ...header } = await readHeader<Header>(prefix, reader, FORMAT, checkHeader);
  const sections = [...header.programs, ...header.files];
  const names = sections.map(({ name }) => name);
  const [text = new Uint8Array(), ...parts] = await takeParts(
    reader,
    [header.settings, ...sections],
    ["settings", ...names],
  );
  const settings = settingsOf(text);
  const programs = new Map<string, Program>();
  const files = new Map<string, Uint8Array>();
  for (const [i, name] of names.entries()) {
    const bytes = parts[i] ?? new Uint8Array();
    if (i >= header.programs.length) files.set(name, bytes);
    else programs.set(name, await readProgram(bytes));
  }
  checkShared(programs, zeros);
  return { kind, programs, files, settings, zeros, values };
}

/** Throws TypeError for a header that contradicts itself. */
function checkHeader(header: Header): void {
  const { kind, settings, programs, files, zeros, values } = header;
  const isGood =
    Object.keys(header).sort().join() === FIELDS.join() &&
    typeof kind === "string" &&
    [programs, files].every(areSections) &&
    Array.isArray(zeros) &&
    zeros.every((name) => typeof name === "string") &&
    [settings, values].every((part) => isPart(part));
  if (!isGood) throw new TypeError("no header with programs and files");
}

/** Whether this is a list of sections with names of their own. */
function areSections(list: unknown): boolean {
  if (!Array.isArray(list)) return false;
  const sections = list.map((section) => (section ?? {}) as Partial<Section>);
  const names = new Set(sections.map(({ name }) => name));
  return (
    names.size === list.length &&
    sections.every((section) => typeof section.name === "string" && isPart(section, "name"))
  );
}

function settingsOf(text: Uint8Array): Head["settings"] {
  let settings: unknown;
  try {
    settings = parseJson(text, true);
  } catch (cause) {
    throw new ProgramError(`bundle: expected settings of JSON, got damaged bytes (${String(cause)})`, {
      cause,
    });
  }
  if (typeof settings === "object" && settings !== null && !Array.isArray(settings)) {
    return settings as Head["settings"];
  }
  throw new ProgramError("bundle: expected an object of settings, got other JSON: the file is damaged");
}

/** Throws ProgramError unless the Programs agree on what they share. */
function checkShared(named: ReadonlyMap<string, Program>, zeros: readonly string[]): void {
  const programs = [...named.values()];
  const withValues = [...named].find(([, { values }]) => values.length > 0);
  if (withValues !== undefined) {
    throw new ProgramError(
      `bundle: ${withValues[0]}: expected a Program without values, got one with values`,
    );
  }
  if (new Set(programs.map(({ device }) => device)).size !== 1) {
    throw new ProgramError("bundle: expected Programs for one device");
  }
  const kinds = new Map<string, string>();
  for (const { role, name, dtype, size, shape } of programs.flatMap(({ buffers }) => buffers)) {
    if (role === "scratch") continue;
    if (name === "" || shape === null)
      throw new ProgramError(`bundle: expected every ${role} to have a name`);
    if (role !== "param" && role !== "state") continue;
    const kind = `${dtype} ${JSON.stringify(shape)} of ${size} elements`; // the shape may have Variables
    const other = kinds.get(name) ?? kind;
    kinds.set(name, kind);
    if (other !== kind) throw new ProgramError(`bundle: ${name}: expected ${other} as before, got ${kind}`);
  }
  const missing = zeros.find((name) => !kinds.has(name));
  if (missing !== undefined) throw new ProgramError(`bundle: expected a Program with ${missing}, got none`);
}
