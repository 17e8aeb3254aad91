/**
 * The start of an exported file, up to its values: one Program (`program.ts`), or a bundle of several Programs that share
 * memory, with other files beside them. `polygrad/runtime/bundle.py` describes the format of bundles.
 */

import { ProgramError } from "./errors";
import type { PieceReader } from "./pieces";
import { PREFIX, readProgram, readProgramLater, type Program } from "./program";

const MAGIC = "PGRB";
const VERSION = 1;

/** The kind of a file that is one Program. */
export const STEP = "an exported step";

/** The function that loads each kind of file. */
const LOADERS: Readonly<Record<string, string>> = {
  [STEP]: "load",
  "text-generation": "loadLanguageModel",
  "feature-extraction": "loadTextEncoder",
  "text-classification": "loadTextClassifier",
};

/** An exported file without its values. `values`: their length in bytes. `zeros`: the values that are zero at first. */
export interface Head {
  readonly kind: string;
  readonly programs: ReadonlyMap<string, Program>;
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly zeros: readonly string[];
  readonly values: number;
}

interface Section {
  readonly name: string;
  readonly length: number;
}

type Header = Omit<Head, "programs" | "files"> & {
  readonly programs: readonly Section[];
  readonly files: readonly Section[];
};

/** The start of a file of a kind. Rejects with ProgramError for a damaged file, and for one of another kind. */
export async function readHead(reader: PieceReader, kind: string): Promise<Head> {
  const head = await readAnyHead(reader);
  if (head.kind === kind) return head;
  const loader = LOADERS[head.kind];
  throw new ProgramError(
    `${LOADERS[kind] ?? "load"}: expected ${kind}, got a file for ${head.kind}: ` +
      (loader === undefined ? "use a newer polygrad" : `use ${loader}`),
  );
}

/** The start of a file. Rejects with ProgramError for a damaged one. */
export async function readAnyHead(reader: PieceReader): Promise<Head> {
  const prefix = await reader.take(PREFIX);
  const isBundle = prefix.length === PREFIX && String.fromCharCode(...prefix.subarray(0, 4)) === MAGIC;
  return isBundle ? readBundle(prefix, reader) : readStep(prefix, reader);
}

async function readStep(prefix: Uint8Array, reader: PieceReader): Promise<Head> {
  const { program, values } = await readProgramLater(prefix, reader);
  const programs = new Map([[STEP, program]]);
  return { kind: STEP, programs, files: new Map(), settings: {}, zeros: [], values };
}

async function readBundle(prefix: Uint8Array, reader: PieceReader): Promise<Head> {
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.byteLength);
  const version = view.getUint32(4, true);
  if (version !== VERSION) {
    throw new ProgramError(`bundle: expected version ${VERSION}, got ${version}: export it again`);
  }
  const header = parsed(await reader.take(view.getUint32(8, true)));
  const read = async ({ name, length }: Section): Promise<Uint8Array> => {
    const bytes = await reader.take(length);
    if (bytes.length === length) return bytes;
    throw new ProgramError(`${name}: expected ${length} bytes, got ${bytes.length}: the file is damaged`);
  };
  const programs = new Map<string, Program>();
  for (const section of header.programs) programs.set(section.name, readProgram(await read(section)));
  const files = new Map<string, Uint8Array>();
  for (const section of header.files) files.set(section.name, await read(section));
  checkShared([...programs.values()], header.zeros);
  return { ...header, programs, files };
}

function parsed(bytes: Uint8Array): Header {
  let header: Partial<Header>;
  try {
    header = (JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) ?? {}) as Header;
  } catch (cause) {
    throw new ProgramError(`bundle: expected a whole header, got damaged bytes (${String(cause)})`, {
      cause,
    });
  }
  const { kind, settings, programs, files, zeros, values } = header;
  const isGood =
    typeof kind === "string" &&
    isObject(settings) &&
    [programs, files].every(areSections) &&
    Array.isArray(zeros) &&
    zeros.every((name) => typeof name === "string") &&
    isCount(values);
  if (!isGood) throw new ProgramError("bundle: expected a header with programs and files, got a damaged one");
  return header as Header;
}

const isObject = (x: unknown): boolean => typeof x === "object" && x !== null && !Array.isArray(x);
const isCount = (n: unknown): boolean => Number.isSafeInteger(n) && (n as number) >= 0;

/** Whether this is a list of sections with names of their own. */
function areSections(list: unknown): boolean {
  if (!Array.isArray(list)) return false;
  const sections = list.map((section) => (section ?? {}) as Partial<Section>);
  const names = new Set(sections.map(({ name }) => name));
  return (
    names.size === list.length &&
    sections.every(({ name, length }) => typeof name === "string" && isCount(length))
  );
}

/** Throws ProgramError unless the Programs agree on what they share. */
function checkShared(programs: readonly Program[], zeros: readonly string[]): void {
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
